#include "stagecraft/compiler/shapes/replicate.h"

#include "stagecraft/compiler/program/compiled_program.h"

namespace stagecraft {
namespace {

StageProgram copy_of(const StageProgram& stage, int replica, const Layout& layout) {
  StageProgram copy = stage;
  copy.id = layout.stage(stage.id, replica);
  copy.replica = replica;
  for (StageInput& input : copy.inputs) {
    if (input.source == StageInput::Source::Stage) {
      input.from = layout.stage(input.from, replica);
    }
  }
  for (StageOutput& output : copy.outputs) {
    for (StageId& consumer : output.consumers) {
      consumer = layout.stage(consumer, replica);
    }
  }
  return copy;
}

}  // namespace

Program replicate(const Program& program, const Layout& layout) {
  if (layout.replicas() == 1) {
    return program;
  }
  const CompiledProgram& model = program.compiled();
  auto compiled = std::make_shared<CompiledProgram>(model);
  compiled->stage_graph = layout.expand(model.stage_graph);
  compiled->partition.stages = replicate(model.partition.stages, layout);
  compiled->partition.order.clear();
  for (int replica = 0; replica < layout.replicas(); ++replica) {
    for (const StageId id : model.partition.order) {
      compiled->partition.order.push_back(layout.stage(id, replica));
    }
  }
  return Program(std::move(compiled), program.other_shapes());
}

std::vector<StageProgram> replicate(const std::vector<StageProgram>& stages, const Layout& layout) {
  if (layout.replicas() == 1) {
    return stages;
  }
  std::vector<StageProgram> copies(stages.size() * static_cast<std::size_t>(layout.replicas()));
  for (int replica = 0; replica < layout.replicas(); ++replica) {
    for (const StageProgram& stage : stages) {
      StageProgram copy = copy_of(stage, replica, layout);
      copies[copy.id.index()] = std::move(copy);
    }
  }
  return copies;
}

}  // namespace stagecraft
