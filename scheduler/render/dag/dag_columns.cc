#include "stagecraft/scheduler/render/dag/dag_columns.h"

#include <algorithm>
#include <cstddef>

namespace stagecraft::drawing {
namespace {

constexpr int kNoColumn = -1;

/// DagColumns walks along all issue lists together. It gives each node the first column that its
/// list, its lane and the nodes that it waits for permit.
class DagColumns {
 public:
  explicit DagColumns(const IssuedDag& issued)
      : issued_(issued),
        adjacency_(issued.dag),
        columns_(issued.dag.nodes.size(), kNoColumn),
        next_(issued.lists.size()),
        list_end_(issued.lists.size()),
        lane_end_(issued.lists.size(), std::vector<int>(issued.dag.streams.size(), kNoColumn)) {}

  std::vector<int> walk() {
    for (bool open = true; open;) {
      open = false;
      bool advanced = false;
      for (std::size_t l = 0; l < issued_.lists.size(); ++l) {
        while (next_[l] < issued_.lists[l].size() && waits_for_none(issued_.lists[l][next_[l]])) {
          put_next(l);
          advanced = true;
        }
        open = open || next_[l] < issued_.lists[l].size();
      }
      if (open && !advanced) {  // each list waits for a transfer that another issues later
        put_next(first_open());
      }
    }
    return std::move(columns_);
  }

 private:
  [[nodiscard]] int column_of(int node) const { return columns_[static_cast<std::size_t>(node)]; }

  template <class Visit>
  void for_each_needed(int node, Visit&& visit) const {
    for (const int e : adjacency_.incoming(node)) {
      visit(issued_.dag.edges[static_cast<std::size_t>(e)].from);
    }
    if (issued_.dag.node(node).kind == DagKind::Receive) {
      visit(issued_.dag.node(node).peer);
    }
  }

  [[nodiscard]] bool waits_for_none(int node) const {
    bool placed = true;
    for_each_needed(node, [&](int needed) { placed = placed && column_of(needed) != kNoColumn; });
    return placed;
  }

  [[nodiscard]] std::size_t first_open() const {
    std::size_t list = 0;
    while (next_[list] == issued_.lists[list].size()) {
      ++list;
    }
    return list;
  }

  void put_next(std::size_t list) {
    const int node = issued_.lists[list][next_[list]++];
    int& lane = lane_end_[list][static_cast<std::size_t>(issued_.dag.node(node).stream)];
    int column = std::max(list_end_[list], lane + 1);
    for_each_needed(node, [&](int needed) { column = std::max(column, column_of(needed) + 1); });
    columns_[static_cast<std::size_t>(node)] = column;
    list_end_[list] = column;
    lane = column;
  }

  const IssuedDag& issued_;
  const DagAdjacency adjacency_;
  std::vector<int> columns_;                // by node
  std::vector<std::size_t> next_;           // by list
  std::vector<int> list_end_;               // by list: the last column that has a node
  std::vector<std::vector<int>> lane_end_;  // by list and stream: likewise
};

}  // namespace

std::vector<int> dag_columns(const IssuedDag& issued) {
  return DagColumns(issued).walk();
}

}  // namespace stagecraft::drawing
