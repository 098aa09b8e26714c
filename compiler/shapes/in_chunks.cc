#include "stagecraft/compiler/shapes/in_chunks.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
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

/// Returns whether a directive for the filter's stage is about this one of the program.
bool is_about(const Filter& filter, const Layout& layout, StageId stage) {
  const std::optional<int> number = filter.number_of(kStageTag);
  return !number || (*number < layout.stages() && layout.model_stage(StageId(*number)) == stage);
}

Buckets buckets_of(const Strategy& strategy, const Layout& layout, StageId stage) {
  Buckets buckets;
  for (const Directive& directive : strategy.directives()) {
    const auto* const replicate = std::get_if<ReplicateDirective>(&directive);
    if (replicate == nullptr || !replicate->options.bucket_bytes) {
      continue;
    }
    if (is_about(replicate->filter, layout, stage)) {
      buckets.bytes = std::min(buckets.bytes.value_or(*replicate->options.bucket_bytes),
                               *replicate->options.bucket_bytes);
      buckets.lend_weights |= replicate->options.sharing() == Sharing::Weights;
    }
  }
  return buckets;
}

/// Returns the regions of a stage that ranks divide.
std::vector<Filter::Tag> divided_in(const Strategy& strategy, const Layout& layout, StageId stage) {
  std::vector<Filter::Tag> tags;
  for (const Directive& directive : strategy.directives()) {
    const auto* const shard = std::get_if<ShardDirective>(&directive);
    if (shard != nullptr && is_about(shard->filter, layout, stage)) {
      std::ranges::copy_if(
          shard->filter.tags, std::back_inserter(tags), [](const Filter::Tag& tag) {
            return tag.name != kStageTag && tag.name != kMicrobatchTag;
          });
    }
  }
  return tags;
}

}  // namespace

Program in_chunks(const Program& program, const Strategy& strategy, const Layout& layout) {
  const CompiledProgram& model = program.compiled();
  std::vector<ChunkBorders> borders;
  for (const StageProgram& stage : model.partition.stages) {
    const Buckets buckets = buckets_of(strategy, layout, stage.id);
    std::vector<Filter::Tag> divided = divided_in(strategy, layout, stage.id);
    borders.push_back(
        buckets.bytes ? borders_for(stage, *buckets.bytes, buckets.lend_weights, std::move(divided))
                      : ChunkBorders{.parameters = {}, .divided = std::move(divided)});
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
