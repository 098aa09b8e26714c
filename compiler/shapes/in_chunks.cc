#include "stagecraft/compiler/shapes/in_chunks.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "stagecraft/compiler/program/chunk_borders.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/shapes/shape_captures.h"

namespace stagecraft {
namespace {

/// Says how the gradients of a stage are summed.
struct Buckets {
  std::optional<std::int64_t> bytes;  // of one part; none: in one part
  bool lend_weights = false;          // weights are gathered part by part, too
};

Buckets buckets_of(const Strategy& strategy, const Layout& layout, StageId stage) {
  Buckets buckets;
  for (const Directive& directive : strategy.directives()) {
    const auto* const replicate = std::get_if<ReplicateDirective>(&directive);
    if (replicate == nullptr || !replicate->options.bucket_bytes) {
      continue;
    }
    const std::optional<int> number = replicate->filter.number_of(kStageTag);
    if (!number || (*number < layout.stages() && layout.model_stage(StageId(*number)) == stage)) {
      buckets.bytes = std::min(buckets.bytes.value_or(*replicate->options.bucket_bytes),
                               *replicate->options.bucket_bytes);
      buckets.lend_weights |= replicate->options.sharing() == Sharing::Weights;
    }
  }
  return buckets;
}

/// Returns the tags of the regions that ranks divide.
std::vector<std::string> divided_tags(const Strategy& strategy) {
  std::set<std::string> tags;
  for (const Directive& directive : strategy.directives()) {
    if (const auto* const shard = std::get_if<ShardDirective>(&directive)) {
      for (const auto& [tag, number] : shard->filter.tags) {
        if (tag != kStageTag && tag != kMicrobatchTag) {
          tags.insert(tag);
        }
      }
    }
  }
  return {tags.begin(), tags.end()};
}

}  // namespace

Program in_chunks(const Program& program, const Strategy& strategy, const Layout& layout) {
  const CompiledProgram& model = program.compiled();
  const std::vector<std::string> divided = divided_tags(strategy);
  std::vector<ChunkBorders> borders;
  for (const StageProgram& stage : model.partition.stages) {
    const Buckets buckets = buckets_of(strategy, layout, stage.id);
    borders.push_back(buckets.bytes
                          ? borders_for(stage, *buckets.bytes, buckets.lend_weights, divided)
                          : ChunkBorders{.parameters = {}, .divided = divided});
  }
  if (std::ranges::all_of(borders, &ChunkBorders::empty)) {
    return program;
  }
  auto made = std::make_shared<CompiledProgram>(model);
  for (std::size_t s = 0; s < borders.size(); ++s) {
    cut_at(made->partition.stages[s], borders[s]);
  }
  made->chunk_borders = std::move(borders);
  auto shapes =
      program.shape_captures() == nullptr ? nullptr : program.shape_captures()->of_program(made);
  return Program(std::move(made), std::move(shapes), program.evaluations());
}

}  // namespace stagecraft
