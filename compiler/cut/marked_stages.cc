#include "stagecraft/compiler/cut/marked_stages.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace stagecraft {
namespace {

constexpr int kUnassigned = -1;

/// StageDepths knows how far downstream each stage is: the number of edges on the longest path to
/// it.
class StageDepths {
 public:
  explicit StageDepths(std::size_t stages) : fed_by_(stages), depth_(stages, 0) {}

  /// Returns the deepest of the stages; of equally deep ones the last entered.
  [[nodiscard]] int furthest(const std::set<int>& stages) const {
    return *std::ranges::max_element(stages, {}, [this](int s) { return std::pair(depth(s), s); });
  }

  /// Returns the least deep of the stages; of equally deep ones the first entered.
  [[nodiscard]] int nearest(const std::set<int>& stages) const {
    return *std::ranges::min_element(stages, {}, [this](int s) { return std::pair(depth(s), s); });
  }

  void feed(const std::set<int>& from, int to) {
    for (const int s : from) {
      if (s != to && fed_by_[static_cast<std::size_t>(to)].insert(s).second) {
        deepen(to, depth(s) + 1);
      }
    }
  }

 private:
  [[nodiscard]] int depth(int stage) const { return depth_[static_cast<std::size_t>(stage)]; }

  /// This ends, because there is no cycle: among marked nodes data flows from stages entered
  /// earlier, an edge that furthest() adds ends at the deepest stage, and one that nearest() adds
  /// begins at the least deep.
  void deepen(int stage, int least) {
    if (depth(stage) >= least) {
      return;
    }
    depth_[static_cast<std::size_t>(stage)] = least;
    for (std::size_t s = 0; s < fed_by_.size(); ++s) {
      if (fed_by_[s].contains(stage)) {
        deepen(static_cast<int>(s), least + 1);
      }
    }
  }

  std::vector<std::set<int>> fed_by_;
  std::vector<int> depth_;
};

class Marked {
 public:
  explicit Marked(const Graph& graph) : graph_(graph), stage_of_(graph.nodes.size(), kUnassigned) {}

  StageAssignment run() {
    assign_marked();
    StageDepths depths = depths_of_marked();
    assign_by_operand(depths);
    assign_by_reader(depths);
    // A node without readers still runs (it may write). It joins the stage of its operands, or else
    // the first stage.
    assign_by_operand(depths);
    std::ranges::replace(stage_of_, kUnassigned, 0);
    return {std::move(stage_of_), std::move(names_)};
  }

 private:
  void assign_marked() {
    std::map<int, std::string> names;
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      for (const Annotation& a : graph_.nodes[n].annotations) {
        if (a.tag == kStageTag) {
          stage_of_[n] = a.index;
          names[a.index] = a.name;
        }
      }
    }
    // A marker around nothing but constants leaves no operator and so makes no stage. The other
    // stages are numbered without it.
    std::map<int, int> dense;
    for (const auto& [index, name] : names) {
      dense[index] = static_cast<int>(names_.size());
      names_.push_back(name);
    }
    for (int& s : stage_of_) {
      s = s == kUnassigned ? s : dense.at(s);
    }
    if (names_.empty()) {
      names_.emplace_back("main");
      std::fill(stage_of_.begin(), stage_of_.end(), 0);
    }
  }

  [[nodiscard]] int producer_stage(ValueId id) const {
    const Value& value = graph_.at(id);
    return value.kind == ValueKind::Computed ? stage_of_[static_cast<std::size_t>(value.position)]
                                             : kUnassigned;
  }

  /// Returns the stages of the unmarked node's operands. For an unmarked operand these are the
  /// stages of its own operands.
  [[nodiscard]] std::set<int> origins_of(std::size_t n,
                                         const std::vector<std::set<int>>& origins) const {
    std::set<int> all;
    for (const ValueId read : reads_of(graph_.nodes[n])) {
      if (producer_stage(read) != kUnassigned) {
        all.insert(producer_stage(read));
      } else if (graph_.at(read).kind == ValueKind::Computed) {
        const std::set<int>& more = origins[static_cast<std::size_t>(graph_.at(read).position)];
        all.insert(more.begin(), more.end());
      }
    }
    return all;
  }

  /// Returns the depths that follow from the markers alone.
  [[nodiscard]] StageDepths depths_of_marked() const {
    StageDepths depths(names_.size());
    std::vector<std::set<int>> origins(graph_.nodes.size());
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      origins[n] = origins_of(n, origins);
      if (stage_of_[n] != kUnassigned) {
        depths.feed(origins[n], stage_of_[n]);
      }
    }
    return depths;
  }

  /// Assigns each node to the stage of its furthest downstream operand, not of the operand made
  /// last: C++ does not define in which order the operands of a sum are made.
  void assign_by_operand(StageDepths& depths) {
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      std::set<int> stages;
      for (const ValueId read : reads_of(graph_.nodes[n])) {
        if (producer_stage(read) != kUnassigned) {
          stages.insert(producer_stage(read));
        }
      }
      if (stage_of_[n] == kUnassigned && !stages.empty()) {
        stage_of_[n] = depths.furthest(stages);
        depths.feed(stages, stage_of_[n]);
      }
    }
  }

  /// Assigns each node to the stage of its least far downstream reader. The value then flows down
  /// to the other readers in any order.
  void assign_by_reader(StageDepths& depths) {
    // Holds, for each value, the stages of the nodes after n that read it. It is filled from the
    // last node back.
    std::map<ValueId, std::set<int>> readers;
    for (std::size_t n = graph_.nodes.size(); n-- > 0;) {
      const Node& node = graph_.nodes[n];
      std::set<int> stages;
      for (const ValueId result : node.results) {
        const auto found = readers.find(result);
        if (found != readers.end()) {
          stages.insert(found->second.begin(), found->second.end());
        }
      }
      if (stage_of_[n] == kUnassigned && !stages.empty()) {
        stage_of_[n] = depths.nearest(stages);
        for (const int s : stages) {
          depths.feed({stage_of_[n]}, s);
        }
      }
      for (const ValueId read : reads_of(node)) {
        if (stage_of_[n] != kUnassigned) {
          readers[read].insert(stage_of_[n]);
        }
      }
    }
  }

  const Graph& graph_;
  std::vector<int> stage_of_;
  std::vector<std::string> names_;
};

}  // namespace

StageAssignment marked_stages(const Graph& graph) {
  return Marked(graph).run();
}

}  // namespace stagecraft
