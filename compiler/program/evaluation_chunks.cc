#include "stagecraft/compiler/program/evaluation_chunks.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/program/compiled_program.h"

namespace stagecraft {
namespace {

/// Returns the names of the parameters of a bucket of the stage.
std::set<std::string> parameters_in(const StageProgram& trained, const ChunkRange& bucket) {
  const std::vector<int> completing = completing_chunks(trained);
  std::set<std::string> names;
  std::size_t number = 0;
  for (const StageParameter& parameter : trained.parameters) {
    if (parameter.trained && bucket.has(completing[number++])) {
      names.insert(parameter.name);
    }
  }
  return names;
}

}  // namespace

Program evaluation_in_chunks(const Program& evaluation,
                             const Program& trained,
                             const PlanTables& tables) {
  const std::vector<StageProgram>& stages = trained.compiled().partition.stages;
  std::vector<std::vector<std::set<std::string>>> in_parts(stages.size());
  for (const PlanGroup& group : tables.groups) {
    if (group.splits_weights()) {
      const std::size_t stage = tables.stages[group.stages.front().index()].program.index();
      const PlanBucket& bucket = tables.buckets[static_cast<std::size_t>(group.bucket)];
      in_parts[stage].push_back(parameters_in(stages[stage], bucket.chunks));
    }
  }
  auto made = std::make_shared<CompiledProgram>(evaluation.compiled());
  made->evaluates = trained.shared();
  for (std::size_t s = 0; s < in_parts.size(); ++s) {
    StageProgram& stage = made->partition.stages[s];
    made->chunk_borders.push_back(borders_between(stage, in_parts[s]));
    cut_at(stage, made->chunk_borders.back());
  }
  return Program(std::move(made));
}

void cut_as_first(StageProgram& stage, const ChunkBorders& borders) {
  Error other_order(
      Errc::CompilePartition,
      fmt::format("in an evaluation of these sizes stage \"{}\" uses its weights in another "
                  "order than in its first batch, and ranks have parts of them: evaluate "
                  "such batches with a trainer of whole weights",
                  stage.name));
  try {
    cut_at(stage, borders);
  } catch (const Error& error) {
    if (error.code() != Errc::CompilePartition) {
      throw;
    }
    throw other_order.because(error);
  }
  if (!borders.empty() && stage.chunks.size() != borders.parameters.size() + 1) {
    throw other_order;  // a border is at its begin
  }
}

ChunkRange users_of(const StageProgram& evaluation,
                    const StageProgram& trained,
                    const ChunkRange& bucket) {
  const std::set<std::string> names = parameters_in(trained, bucket);
  std::set<ValueId> weights;
  for (const StageParameter& parameter : evaluation.parameters) {
    if (names.contains(parameter.name)) {
      weights.insert(parameter.value);
    }
  }
  const auto uses = [&](const Node& node) {
    return std::ranges::any_of(reads_of(node), [&](ValueId v) { return weights.contains(v); });
  };
  ChunkRange users{.first = 0, .count = 0};
  for (std::int32_t c = 0; c < std::ssize(evaluation.chunks); ++c) {
    if (std::ranges::any_of(evaluation.chunks[static_cast<std::size_t>(c)].nodes, uses)) {
      users.first = users.count == 0 ? c : users.first;
      users.count = c - users.first + 1;
    }
  }
  return users;
}

}  // namespace stagecraft
