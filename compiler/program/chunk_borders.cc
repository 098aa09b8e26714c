#include "stagecraft/compiler/program/chunk_borders.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

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

/// MarkedRegion is the operators [begin, end) of a region with a tag.
struct MarkedRegion {
  std::size_t begin = 0, end = 0;

  [[nodiscard]] bool has(std::size_t node) const { return node >= begin && node < end; }
};

/// Returns the regions that have one of the tags, in the order of the operators.
std::vector<MarkedRegion> regions_with(const std::vector<Node>& nodes,
                                       const std::vector<Filter::Tag>& tags) {
  std::vector<MarkedRegion> regions;
  const Annotation* open = nullptr;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const std::vector<Annotation>& scopes = nodes[n].annotations;
    const auto found = std::ranges::find_if(scopes, [&](const Annotation& scope) {
      return std::ranges::any_of(tags, [&](const Filter::Tag& tag) {
        return tag.name == scope.tag && tag.number.value_or(scope.index) == scope.index;
      });
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
                         std::vector<Filter::Tag> divided) {
  ChunkBorders chosen{.parameters = {}, .divided = std::move(divided)};
  if (stage.chunks.size() != 1 || stage.chunks.front().recompute) {
    return chosen;
  }
  const std::vector<MarkedRegion> regions =
      regions_with(stage.chunks.front().nodes, chosen.divided);
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
    if (std::ranges::any_of(regions, [&](const MarkedRegion& r) { return r.has(reader->first); })) {
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

/// Marks the chunks of the regions that ranks divide.
void mark_divided(StageProgram& stage, const std::vector<Filter::Tag>& tags) {
  for (Chunk& chunk : stage.chunks) {
    const std::vector<MarkedRegion> regions = regions_with(chunk.nodes, tags);
    chunk.divided = regions.size() == 1 && regions.front().begin == 0 &&
                    regions.front().end == chunk.nodes.size();
    if (!chunk.divided && !regions.empty()) {
      const std::string& name = tags.front().name;
      throw Error(
          Errc::CompilePartition,
          fmt::format("stage \"{}\" has recomputed parts, and ranks can divide its regions {} "
                      "only if each is such a part by itself: name {} at --recompute, and "
                      "nothing around it",
                      stage.name,
                      name,
                      name));
    }
  }
}

}  // namespace

void cut_at(StageProgram& stage, const ChunkBorders& borders) {
  std::set<std::size_t> positions = positions_of(stage, borders.parameters);
  const bool whole = stage.chunks.size() == 1 && !stage.chunks.front().recompute;
  for (const MarkedRegion& region : whole
                                        ? regions_with(stage.chunks.front().nodes, borders.divided)
                                        : std::vector<MarkedRegion>()) {
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
