#include "stagecraft/compiler/shapes/in_chunks.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <variant>

#include "stagecraft/compiler/program/chunk_borders.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/shapes/shape_captures.h"

namespace stagecraft {
namespace {

/// Returns the bytes of the parts in which the stage's gradients are summed; none for one part.
std::optional<std::int64_t> bucket_bytes(const Strategy& strategy,
                                         const Layout& layout,
                                         StageId stage) {
  std::optional<std::int64_t> bytes;
  for (const Directive& directive : strategy.directives()) {
    const auto* const replicate = std::get_if<ReplicateDirective>(&directive);
    if (replicate == nullptr || !replicate->options.bucket_bytes) {
      continue;
    }
    const std::optional<int> number = replicate->filter.number_of(kStageTag);
    if (!number || (*number < layout.stages() && layout.model_stage(StageId(*number)) == stage)) {
      bytes = std::min(bytes.value_or(*replicate->options.bucket_bytes),
                       *replicate->options.bucket_bytes);
    }
  }
  return bytes;
}

}  // namespace

Program in_chunks(const Program& program, const Strategy& strategy, const Layout& layout) {
  const CompiledProgram& model = program.compiled();
  std::vector<ChunkBorders> borders;
  for (const StageProgram& stage : model.partition.stages) {
    const auto bytes = bucket_bytes(strategy, layout, stage.id);
    borders.push_back(bytes ? borders_for(stage, *bytes) : ChunkBorders());
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
