#include "stagecraft/compiler/program/chunk_borders.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/stage/chunks.h"

namespace stagecraft {
namespace {

/// Positions of operators.
struct Readers {
  std::size_t first = 0, last = 0;
};

/// Returns the first and the last operator that read each of the stage's parameters, by name.
/// Requires: a stage of one chunk.
std::map<std::string, Readers> readers_of(const StageProgram& stage) {
  std::map<ValueId, Readers> of_values;
  const std::vector<Node>& nodes = stage.chunks.front().nodes;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    for (const ValueId read : reads_of(nodes[n])) {
      of_values.try_emplace(read, Readers{n, n}).first->second.last = n;
    }
  }
  std::map<std::string, Readers> readers;
  for (const StageParameter& parameter : stage.parameters) {
    if (const auto found = of_values.find(parameter.value); found != of_values.end()) {
      readers.emplace(parameter.name, found->second);
    }
  }
  return readers;
}

bool can_be_cut(StageProgram stage, const std::set<std::size_t>& borders) {
  try {
    cut_into_chunks(stage, {borders.begin(), borders.end()});
    return true;
  } catch (const Error& error) {
    if (error.code() != Errc::CompilePartition) {
      throw;
    }
    return false;
  }
}

}  // namespace

ChunkBorders borders_for(const StageProgram& stage, std::int64_t most_bytes, bool together) {
  if (stage.chunks.size() != 1 || stage.chunks.front().recompute) {
    return {};
  }
  struct Reader {
    std::string parameter;
    std::int64_t bytes = 0;
  };
  std::map<std::size_t, Reader, std::greater<>> readers;  // from the last operator to the first
  const auto all = readers_of(stage);
  for (const StageParameter& parameter : stage.parameters) {
    if (const auto found = all.find(parameter.name); parameter.trained && found != all.end()) {
      Reader& reader = readers[found->second.first];
      reader.parameter = parameter.name;
      reader.bytes += bytes_of(stage.at(parameter.value));
    }
  }
  ChunkBorders chosen;
  std::set<std::size_t> borders;
  std::int64_t bytes = 0;
  for (auto reader = readers.begin(); reader != readers.end(); ++reader) {
    bytes += reader->second.bytes;
    const auto next = std::next(reader);
    if (next == readers.end() || bytes + next->second.bytes <= most_bytes) {
      continue;
    }
    borders.insert(reader->first);
    const auto is_split = [&](const StageParameter& parameter) {
      const auto found = all.find(parameter.name);
      return parameter.trained && found != all.end() && found->second.first < reader->first &&
             reader->first <= found->second.last;
    };
    if (!(together && std::ranges::any_of(stage.parameters, is_split)) &&
        can_be_cut(stage, borders)) {
      chosen.push_back(reader->second.parameter);
      bytes = 0;
    } else {
      borders.erase(reader->first);
    }
  }
  std::ranges::reverse(chosen);
  return chosen;
}

void cut_at(StageProgram& stage, const ChunkBorders& borders) {
  if (borders.empty()) {
    return;
  }
  const auto all = readers_of(stage);
  std::vector<std::size_t> positions;
  for (const std::string& parameter : borders) {
    const auto found = all.find(parameter);
    if (found == all.end() || (!positions.empty() && found->second.first <= positions.back())) {
      throw Error(Errc::CompilePartition,
                  fmt::format("stage \"{}\" reads the parameter {} in another order than the "
                              "program's: leave bucket_size out of the strategy",
                              stage.name,
                              parameter));
    }
    positions.push_back(found->second.first);
  }
  cut_into_chunks(stage, positions);
}

}  // namespace stagecraft
