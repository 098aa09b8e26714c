#include "stagecraft/compiler/stage/stage_program.h"

#include <algorithm>

namespace stagecraft {

bool StageProgram::trains() const {
  return std::ranges::any_of(parameters, &StageParameter::trained);
}

std::size_t StageProgram::operator_count() const {
  std::size_t count = 0;
  for (const Chunk& chunk : chunks) {
    count += chunk.nodes.size();
  }
  return count;
}

bool StageProgram::recomputes() const {
  return std::ranges::any_of(chunks, &Chunk::recompute);
}

std::int64_t StageProgram::largest_replay() const {
  std::int64_t largest = 0;
  for (const Chunk& chunk : chunks) {
    largest = std::max(largest, chunk.replayed_bytes);
  }
  return largest;
}

std::int64_t StageProgram::replayed_bytes() const {
  std::int64_t bytes = 0;
  for (const Chunk& chunk : chunks) {
    bytes += chunk.replayed_bytes;
  }
  return bytes;
}

std::int64_t weight_bytes(const StageProgram& stage) {
  std::int64_t bytes = 0;
  for (const StageParameter& parameter : stage.parameters) {
    bytes += bytes_of(stage.at(parameter.value));
  }
  return bytes;
}

}  // namespace stagecraft
