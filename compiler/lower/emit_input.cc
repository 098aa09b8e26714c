#include "stagecraft/compiler/lower/emit_input.h"

namespace stagecraft {

const ChunkFacts& StageFacts::of(StageId s) {
  const StageProgram& stage = input_.program_of(s);
  const auto [entry, added] = facts_.try_emplace(stage.id);
  ChunkFacts& facts = entry->second;
  if (!added) {
    return facts;
  }
  for (const DagChunk& chunk : input_.source.dag.chunks[s.index()]) {
    facts.trains.push_back(stage.trains() && chunk.parameter_bytes > 0);
  }
  for (const StageInput& input : stage.inputs) {
    facts.first_reader.push_back(first_reader(stage, input.value));
  }
  for (const StageOutput& output : stage.outputs) {
    facts.maker.push_back(maker_of(stage, output.value));
  }
  return facts;
}

}  // namespace stagecraft
