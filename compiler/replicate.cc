#include "stagecraft/compiler/replicate.h"

#include "stagecraft/compiler/compiled_program.h"

namespace stagecraft {
namespace {

StageProgram copy_of(const StageProgram& stage, int replica, const Replicas& replicas) {
  StageProgram copy = stage;
  copy.id = replicas.stage(stage.id, replica);
  copy.replica = replica;
  for (StageInput& input : copy.inputs) {
    if (input.source == StageInput::Source::Stage) {
      input.from = replicas.stage(input.from, replica);
    }
  }
  for (StageOutput& output : copy.outputs) {
    for (StageId& consumer : output.consumers) {
      consumer = replicas.stage(consumer, replica);
    }
  }
  return copy;
}

}  // namespace

Program replicate(const Program& program, const Replicas& replicas) {
  if (replicas.count() == 1) {
    return program;
  }
  const CompiledProgram& model = program.compiled();
  auto compiled = std::make_shared<CompiledProgram>(model);
  compiled->stage_graph = replicas.expand(model.stage_graph);
  compiled->partition.stages.resize(static_cast<std::size_t>(replicas.stages()));
  compiled->partition.order.clear();
  for (int replica = 0; replica < replicas.count(); ++replica) {
    for (const StageProgram& stage : model.partition.stages) {
      StageProgram copy = copy_of(stage, replica, replicas);
      compiled->partition.stages[copy.id.index()] = std::move(copy);
    }
    for (const StageId id : model.partition.order) {
      compiled->partition.order.push_back(replicas.stage(id, replica));
    }
  }
  return Program(std::move(compiled));
}

}  // namespace stagecraft
