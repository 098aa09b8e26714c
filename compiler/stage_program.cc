#include "stagecraft/compiler/stage_program.h"

#include <algorithm>

#include "stagecraft/compiler/compiled_program.h"

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

std::int64_t weight_bytes(const StageProgram& stage) {
  std::int64_t bytes = 0;
  for (const StageParameter& parameter : stage.parameters) {
    bytes += bytes_of(stage.at(parameter.value));
  }
  return bytes;
}

}  // namespace stagecraft
