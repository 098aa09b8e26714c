#include "stagecraft/compiler/program/chunk_borders.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
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

/// WeightViews knows the views of trained parameters that the first readers of these make, such as
/// a transposed weight. A border behind such an operator hands the view on: a rank that gives
/// weights back then keeps a copy of it for each microbatch in flight.
class WeightViews {
 public:
  WeightViews(const StageProgram& stage, const std::map<std::string, Readers>& readers)
      : nodes_(stage.chunks.front().nodes) {
    for (const StageParameter& parameter : stage.parameters) {
      const auto found = readers.find(parameter.name);
      if (!parameter.trained || found == readers.end()) {
        continue;
      }
      for (const ValueId made : nodes_[found->second.first].results) {
        if (made != kNoValue && stage.at(made).alias_set == stage.at(parameter.value).alias_set) {
          makers_.emplace(made, found->second.first);
        }
      }
    }
  }

  /// Returns the operator at which a chunk begins that has all views that this one reads.
  [[nodiscard]] std::size_t begin_of(std::size_t node) const {
    std::size_t begin = node;
    for (const ValueId read : reads_of(nodes_[node])) {
      if (const auto found = makers_.find(read); found != makers_.end()) {
        begin = std::min(begin, found->second);
      }
    }
    return begin == node ? node : begin_of(begin);
  }

 private:
  const std::vector<Node>& nodes_;
  std::map<ValueId, std::size_t> makers_;
};

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
  const WeightViews views(stage, all);
  for (const StageParameter& parameter : stage.parameters) {
    if (const auto found = all.find(parameter.name); parameter.trained && found != all.end()) {
      const std::size_t begin = views.begin_of(found->second.first);
      Reader& reader = readers[begin];
      if (begin == found->second.first) {
        reader.parameter = parameter.name;
      }
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

ChunkBorders borders_between(const StageProgram& stage,
                             const std::vector<std::set<std::string>>& sets) {
  ChunkBorders chosen;
  if (stage.chunks.size() != 1) {
    return chosen;
  }
  std::map<std::size_t, std::string> first_readers;  // of each set
  const auto all = readers_of(stage);
  for (const std::set<std::string>& set : sets) {
    std::optional<std::pair<std::size_t, std::string>> first;
    for (const std::string& parameter : set) {
      const auto found = all.find(parameter);
      if (found != all.end() && (!first || found->second.first < first->first)) {
        first.emplace(found->second.first, parameter);
      }
    }
    if (first) {
      first_readers.insert(*first);
    }
  }
  std::set<std::size_t> borders;
  for (const auto& [position, parameter] : first_readers) {
    if (position == first_readers.begin()->first) {
      continue;  // what comes before it is in its chunk
    }
    borders.insert(position);
    if (can_be_cut(stage, borders)) {
      chosen.parameters.push_back(parameter);
    } else {
      borders.erase(position);
    }
  }
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

/// GivenChunk is a chunk that the stage has before it is cut at borders.
struct GivenChunk {
  std::size_t begin = 0, end = 0;  ///< operators
  bool recompute = false;
  std::int64_t replayed_bytes = 0;
};

/// Returns the chunks, and makes one of them.
std::vector<GivenChunk> join(StageProgram& stage) {
  std::vector<GivenChunk> given;
  Chunk all;
  for (const Chunk& chunk : stage.chunks) {
    const std::size_t begin = all.nodes.size();
    all.nodes.insert(all.nodes.end(), chunk.nodes.begin(), chunk.nodes.end());
    given.push_back({begin, all.nodes.size(), chunk.recompute, chunk.replayed_bytes});
  }
  stage.chunks = {std::move(all)};
  return given;
}

/// Lets the parts of a recomputed chunk be recomputed, each from inputs that it keeps. A region is
/// recomputed as a whole.
void mark_recomputed(StageProgram& stage, const std::vector<GivenChunk>& given) {
  std::size_t begin = 0;
  for (Chunk& chunk : stage.chunks) {
    const std::size_t end = begin + chunk.nodes.size();
    for (const GivenChunk& of : given) {
      if (!of.recompute || of.end <= begin || end <= of.begin) {
        continue;
      }
      // The first part bears all measured bytes: no part has more, and the sum is right.
      if (of.begin >= begin) {
        chunk.replayed_bytes += of.replayed_bytes;
      }
      chunk.recompute = true;
    }
    begin = end;
  }
}

/// Adds what the parts of recomputed chunks keep beyond the inputs of these chunks.
void count_kept_inputs(StageProgram& stage, const std::vector<GivenChunk>& given) {
  std::set<ValueId> kept;
  for (const StageInput& input : stage.inputs) {
    kept.insert(input.value);
  }
  std::size_t begin = 0;
  for (const Chunk& chunk : stage.chunks) {
    const bool is_new = std::ranges::find(given, begin, &GivenChunk::begin) == given.end();
    for (const ValueId input : chunk.inputs) {
      if (kept.insert(input).second && chunk.recompute && is_new) {
        stage.saved_bytes += bytes_of(stage.at(input));
      }
    }
    begin += chunk.nodes.size();
  }
}

}  // namespace

void cut_at(StageProgram& stage, const ChunkBorders& borders) {
  std::set<std::size_t> positions = positions_of(stage, borders.parameters);
  const auto has_region = [&](const Chunk& chunk) {
    return !regions_with(chunk.nodes, borders.divided).empty();
  };
  if (positions.empty() && std::ranges::none_of(stage.chunks, has_region)) {
    return;
  }
  const std::vector<GivenChunk> given = join(stage);
  const std::vector<MarkedRegion> regions =
      regions_with(stage.chunks.front().nodes, borders.divided);
  for (const GivenChunk& chunk : given) {
    positions.insert(chunk.begin);
  }
  for (const MarkedRegion& region : regions) {
    positions.erase(positions.upper_bound(region.begin), positions.lower_bound(region.end));
    positions.insert({region.begin, region.end});
  }
  positions.erase(0);
  positions.erase(stage.chunks.front().nodes.size());
  cut_into_chunks(stage, {positions.begin(), positions.end()});
  mark_recomputed(stage, given);
  count_kept_inputs(stage, given);
  std::size_t begin = 0;
  for (Chunk& chunk : stage.chunks) {
    chunk.divided = std::ranges::find(regions, begin, &MarkedRegion::begin) != regions.end();
    begin += chunk.nodes.size();
  }
}

}  // namespace stagecraft
