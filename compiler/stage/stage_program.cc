#include "stagecraft/compiler/stage/stage_program.h"

#include <algorithm>
#include <map>
#include <set>

namespace stagecraft {
namespace {

bool reads(const Chunk& chunk, ValueId value) {
  return std::ranges::find(chunk.inputs, value) != chunk.inputs.end();
}

bool makes(const Chunk& chunk, ValueId value) {
  return std::ranges::find(chunk.outputs, value) != chunk.outputs.end();
}

/// Returns the number of the last chunk for which the condition holds; 0 if there is none.
template <class Condition>
int last_chunk(const StageProgram& stage, Condition&& condition) {
  for (std::size_t c = stage.chunks.size(); c-- > 0;) {
    if (condition(stage.chunks[c])) {
      return static_cast<int>(c);
    }
  }
  return 0;
}

}  // namespace

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

std::string read_beyond(const StageProgram& stage, int first, int end) {
  std::set<ValueId> elsewhere;
  for (int c = 0; c < static_cast<int>(stage.chunks.size()); ++c) {
    for (const Node& node : stage.chunks[static_cast<std::size_t>(c)].nodes) {
      if (c < first || c >= end) {
        for (const ValueId value : reads_of(node)) {
          elsewhere.insert(value);
        }
      }
    }
  }
  const std::vector<int> completing = completing_chunks(stage);
  std::size_t trained = 0;
  for (const StageParameter& parameter : stage.parameters) {
    const int chunk = parameter.trained ? completing[trained++] : -1;
    if (chunk >= first && chunk < end && elsewhere.contains(parameter.value)) {
      return parameter.name;
    }
  }
  return {};
}

std::vector<int> completing_chunks(const StageProgram& stage) {
  std::map<ValueId, int> first;
  for (std::size_t c = 0; c < stage.chunks.size(); ++c) {
    for (const Node& node : stage.chunks[c].nodes) {
      for (const ValueId value : reads_of(node)) {
        first.try_emplace(value, static_cast<int>(c));
      }
    }
  }
  std::vector<int> chunks;
  for (const StageParameter& parameter : stage.parameters) {
    if (parameter.trained) {
      const auto found = first.find(parameter.value);
      chunks.push_back(found == first.end() ? 0 : found->second);
    }
  }
  return chunks;
}

bool uses(const Chunk& chunk, ValueId value) {
  return std::ranges::any_of(chunk.nodes, [&](const Node& node) {
    const std::vector<ValueId> values = reads_of(node);
    return std::ranges::find(values, value) != values.end();
  });
}

int first_reader(const StageProgram& stage, ValueId input) {
  const auto found =
      std::ranges::find_if(stage.chunks, [&](const Chunk& chunk) { return reads(chunk, input); });
  return found == stage.chunks.end() ? 0 : static_cast<int>(found - stage.chunks.begin());
}

int maker_of(const StageProgram& stage, ValueId output) {
  return last_chunk(stage, [&](const Chunk& chunk) { return makes(chunk, output); });
}

int last_user(const StageProgram& stage, ValueId output) {
  return last_chunk(
      stage, [&](const Chunk& chunk) { return makes(chunk, output) || reads(chunk, output); });
}

std::int64_t weight_bytes(const StageProgram& stage) {
  std::int64_t bytes = 0;
  for (const StageParameter& parameter : stage.parameters) {
    bytes += bytes_of(stage.at(parameter.value));
  }
  return bytes;
}

}  // namespace stagecraft
