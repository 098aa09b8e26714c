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

/// Returns the position of the first operator that reads each of the stage's parameters, by name.
/// Requires: a stage of one chunk.
std::map<std::string, std::size_t> first_readers(const StageProgram& stage) {
  std::map<ValueId, std::size_t> first;
  const std::vector<Node>& nodes = stage.chunks.front().nodes;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    for (const ValueId read : reads_of(nodes[n])) {
      first.try_emplace(read, n);
    }
  }
  std::map<std::string, std::size_t> readers;
  for (const StageParameter& parameter : stage.parameters) {
    if (const auto found = first.find(parameter.value); found != first.end()) {
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

ChunkBorders borders_for(const StageProgram& stage, std::int64_t most_bytes) {
  if (stage.chunks.size() != 1) {
    return {};
  }
  struct Reader {
    std::string parameter;
    std::int64_t bytes = 0;
  };
  std::map<std::size_t, Reader, std::greater<>> readers;  // from the last operator to the first
  const auto first = first_readers(stage);
  for (const StageParameter& parameter : stage.parameters) {
    if (const auto found = first.find(parameter.name); parameter.trained && found != first.end()) {
      Reader& reader = readers[found->second];
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
    if (can_be_cut(stage, borders)) {
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
  const auto first = first_readers(stage);
  std::vector<std::size_t> positions;
  for (const std::string& parameter : borders) {
    const auto found = first.find(parameter);
    if (found == first.end() || (!positions.empty() && found->second <= positions.back())) {
      throw Error(Errc::CompilePartition,
                  fmt::format("stage \"{}\" reads the parameter {} in another order than the "
                              "program's: leave bucket_size out of the strategy",
                              stage.name,
                              parameter));
    }
    positions.push_back(found->second);
  }
  cut_into_chunks(stage, positions);
}

}  // namespace stagecraft
