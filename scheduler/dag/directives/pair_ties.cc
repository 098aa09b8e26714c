#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "stagecraft/scheduler/dag/directives/directives.h"

namespace stagecraft {
namespace {

/// The copies in the schedule of one stage of a tie: by rank, ascending, the copy that is there.
/// The rank with the i-th entry has the i-th shard.
using CopyOfShard = std::vector<int>;

/// Returns, by copy of a stage, the copy of another that has the same shards; nothing if there is
/// none for some copy.
std::optional<std::vector<int>> partners_of(const CopyOfShard& one,
                                            const CopyOfShard& other,
                                            std::size_t copies) {
  if (one.size() != other.size()) {
    return std::nullopt;
  }
  std::vector<int> partner(copies, kNone), back(copies, kNone);
  for (std::size_t shard = 0; shard < one.size(); ++shard) {
    int& known = partner[static_cast<std::size_t>(one[shard])];
    int& known_back = back[static_cast<std::size_t>(other[shard])];
    if (known == kNone && known_back == kNone) {
      known = other[shard];
      known_back = one[shard];
    } else if (known != other[shard] || known_back != one[shard]) {
      return std::nullopt;
    }
  }
  const bool all = std::ranges::find(partner, kNone) == partner.end();
  return all ? std::optional(partner) : std::nullopt;
}

/// TieOfModel is a tie with all its copies in the schedule.
struct TieOfModel {
  std::vector<std::size_t> numbers = {};  ///< in DagSource::ties, by copy
  /// The same ties with the stages that have the same shards; nothing if shards do not correspond.
  std::optional<std::vector<DagTie>> paired = {};
};

class TiePairs {
 public:
  TiePairs(TrainingDag& dag, const std::vector<Sharing>& asked)
      : dag_(dag), asked_(asked), places_(static_cast<std::size_t>(dag.source.graph.size())) {
    for (const DagNode& node : dag.nodes) {
      if (node.kind == DagKind::Update && node.place != kNone) {
        places_[node.stage.index()] = dag.places[static_cast<std::size_t>(node.place)];
      }
    }
    for (std::size_t t = 0; t < dag.source.ties.size(); ++t) {
      ties_[dag.source.ties[t].name].numbers.push_back(t);
    }
    for (auto& [name, tie] : ties_) {
      tie.paired = paired(tie);
    }
  }

  /// Returns the stages of ties whose shards do not correspond, and those that are tied to them.
  [[nodiscard]] std::set<StageId> whole_stages() const {
    std::set<StageId> whole;
    for (bool grows = true; std::exchange(grows, false);) {
      for (const auto& [name, tie] : ties_) {
        const std::vector<StageId> stages = stages_of(tie);
        const bool stays = !tie.paired || std::ranges::any_of(
                                              stages, [&](StageId s) { return whole.contains(s); });
        for (const StageId stage : stays ? stages : std::vector<StageId>()) {
          grows = whole.insert(stage).second || grows;
        }
      }
    }
    return whole;
  }

  void apply(const std::set<StageId>& whole) {
    for (auto& [name, tie] : ties_) {
      for (std::size_t c = 0; tie.paired && c < tie.numbers.size(); ++c) {
        DagTie& paired = (*tie.paired)[c];
        if (!whole.contains(paired.stages.front())) {
          dag_.source.ties[tie.numbers[c]] = std::move(paired);
        }
      }
    }
  }

 private:
  [[nodiscard]] const DagTie& copy(const TieOfModel& tie, std::size_t number) const {
    return dag_.source.ties[tie.numbers[number]];
  }

  [[nodiscard]] std::vector<StageId> stages_of(const TieOfModel& tie) const {
    std::vector<StageId> all;
    for (std::size_t c = 0; c < tie.numbers.size(); ++c) {
      all.insert(all.end(), copy(tie, c).stages.begin(), copy(tie, c).stages.end());
    }
    return all;
  }

  /// `position`: of the stage in the tie.
  [[nodiscard]] CopyOfShard copies_by_rank(const TieOfModel& tie, std::size_t position) const {
    std::map<Rank, int> copy_on;
    for (std::size_t c = 0; c < tie.numbers.size(); ++c) {
      for (const Rank rank : places_[copy(tie, c).stages[position].index()]) {
        copy_on[rank] = static_cast<int>(c);
      }
    }
    CopyOfShard copies;
    for (const auto& [rank, c] : copy_on) {
      copies.push_back(c);
    }
    return copies;
  }

  [[nodiscard]] std::optional<std::vector<DagTie>> paired(const TieOfModel& tie) const {
    const std::vector<StageId> stages = stages_of(tie);
    const Sharing sharing = asked_[stages.front().index()];
    const bool alike = std::ranges::all_of(
        stages, [&](StageId stage) { return asked_[stage.index()] == sharing; });
    if (!alike || sharing == Sharing::Nothing) {
      return std::nullopt;
    }
    std::vector<DagTie> made;
    for (std::size_t c = 0; c < tie.numbers.size(); ++c) {
      made.push_back(copy(tie, c));
    }
    const CopyOfShard first = copies_by_rank(tie, 0);
    for (std::size_t i = 1; i < made.front().stages.size(); ++i) {
      const auto partners = partners_of(first, copies_by_rank(tie, i), made.size());
      if (!partners) {
        return std::nullopt;
      }
      for (std::size_t c = 0; c < made.size(); ++c) {
        made[c].stages[i] = copy(tie, static_cast<std::size_t>((*partners)[c])).stages[i];
      }
    }
    return made;
  }

  TrainingDag& dag_;
  const std::vector<Sharing>& asked_;
  std::vector<std::vector<Rank>> places_;   // by stage
  std::map<std::string, TieOfModel> ties_;  // by name
};

}  // namespace

std::set<StageId> pair_ties(TrainingDag& dag, const std::vector<Sharing>& asked) {
  TiePairs pairs(dag, asked);
  std::set<StageId> whole = pairs.whole_stages();
  pairs.apply(whole);
  return whole;
}

}  // namespace stagecraft
