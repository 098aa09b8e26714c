#include "stagecraft/compiler/program/chunk_borders.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

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

/// DividedRun is the operators [begin, end) of a region with a tag.
struct DividedRun {
  std::size_t begin = 0, end = 0;

  [[nodiscard]] bool has(std::size_t node) const { return node >= begin && node < end; }
};

/// Returns the regions that have one of the tags, in the order of the operators.
std::vector<DividedRun> regions_with(const std::vector<Node>& nodes,
                                     const std::vector<std::string>& tags) {
  std::vector<DividedRun> regions;
  const Annotation* open = nullptr;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const std::vector<Annotation>& scopes = nodes[n].annotations;
    const auto found = std::ranges::find_if(scopes, [&](const Annotation& scope) {
      return std::ranges::find(tags, scope.tag) != tags.end();
    });
    if (found == scopes.end()) {
      open = nullptr;
      continue;
    }
    if (open == nullptr || *open != *found) {
      regions.push_back({n, n});
    }
    open = &*found;
    regions.back().end = n + 1;
  }
  return regions;
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

ChunkBorders borders_for(const StageProgram& stage,
                         std::int64_t most_bytes,
                         bool together,
                         std::vector<std::string> divided) {
  ChunkBorders chosen{.parameters = {}, .divided = std::move(divided)};
  if (stage.chunks.size() != 1 || stage.chunks.front().recompute) {
    return chosen;
  }
  const std::vector<DividedRun> regions = regions_with(stage.chunks.front().nodes, chosen.divided);
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
  std::set<std::size_t> borders;
  std::int64_t bytes = 0;
  for (auto reader = readers.begin(); reader != readers.end(); ++reader) {
    if (std::ranges::any_of(regions, [&](const DividedRun& r) { return r.has(reader->first); })) {
      bytes = 0;
      continue;
    }
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
      chosen.parameters.push_back(reader->second.parameter);
      bytes = 0;
    } else {
      borders.erase(reader->first);
    }
  }
  std::ranges::reverse(chosen.parameters);
  return chosen;
}

namespace {

/// Returns the operators at which chunks begin, ascending.
std::set<std::size_t> positions_of(const StageProgram& stage,
                                   const std::vector<std::string>& parameters) {
  std::set<std::size_t> positions;
  const auto all = parameters.empty() ? std::map<std::string, Readers>() : readers_of(stage);
  for (const std::string& parameter : parameters) {
    const auto found = all.find(parameter);
    if (found == all.end() || (!positions.empty() && found->second.first <= *positions.rbegin())) {
      throw Error(Errc::CompilePartition,
                  fmt::format("stage \"{}\" reads the parameter {} in another order than the "
                              "program's: leave bucket_size out of the strategy",
                              stage.name,
                              parameter));
    }
    positions.insert(found->second.first);
  }
  return positions;
}

/// Returns whether all operators of a chunk are in regions with these tags.
bool is_in_regions(const Chunk& chunk, const std::vector<std::string>& tags) {
  const std::vector<DividedRun> regions = regions_with(chunk.nodes, tags);
  return regions.size() == 1 && regions.front().begin == 0 &&
         regions.front().end == chunk.nodes.size();
}

/// Marks the chunks of the regions that ranks divide.
void mark_divided(StageProgram& stage, const std::vector<std::string>& tags) {
  for (Chunk& chunk : stage.chunks) {
    chunk.divided = is_in_regions(chunk, tags);
    if (!chunk.divided && !regions_with(chunk.nodes, tags).empty()) {
      throw Error(Errc::CompilePartition,
                  fmt::format("a part of stage \"{}\" is recomputed that has a region {} and more "
                              "beside it: recompute such regions by themselves (--recompute {})",
                              stage.name,
                              fmt::join(tags, " or "),
                              fmt::join(tags, ",")));
    }
  }
}

}  // namespace

void cut_at(StageProgram& stage, const ChunkBorders& borders) {
  std::set<std::size_t> positions = positions_of(stage, borders.parameters);
  const bool whole = stage.chunks.size() == 1 && !stage.chunks.front().recompute;
  for (const DividedRun& region : whole ? regions_with(stage.chunks.front().nodes, borders.divided)
                                        : std::vector<DividedRun>()) {
    positions.insert(region.begin);
    positions.insert(region.end);
  }
  if (whole) {
    positions.erase(0);
    positions.erase(stage.chunks.front().nodes.size());
  }
  if (!positions.empty()) {
    cut_into_chunks(stage, {positions.begin(), positions.end()});
  }
  mark_divided(stage, borders.divided);
}

}  // namespace stagecraft
