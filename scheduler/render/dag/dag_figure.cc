#include "stagecraft/scheduler/render/dag/dag_figure.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/render/dag/dag_columns.h"
#include "stagecraft/scheduler/render/dag/dag_limits.h"

namespace stagecraft::drawing {
namespace {

constexpr double kLaneNames = 104;   // left of the lanes
constexpr double kTitleHeight = 34;  // above the clusters
constexpr double kClusterGap = 20;   // between clusters
constexpr double kLanePadding = 10;  // left and right of the nodes
constexpr double kClusterMargin = 14;

void check_dag_size(const TrainingDag& dag) {
  if (dag.size() > kMaxDrawnNodes) {
    throw Error(Errc::ScheduleParameter,
                fmt::format("a picture holds at most {} nodes, but this DAG has {}; draw fewer "
                            "microbatches or stages, or print the DAG as text or JSON",
                            kMaxDrawnNodes,
                            dag.size()));
  }
}

/// Returns the edges without repetitions, the transfers last, so that they are drawn on top.
std::vector<DagFigure::Line> dag_lines(const TrainingDag& dag) {
  std::map<std::pair<int, int>, bool> data;
  for (const DagEdge& edge : dag.edges) {
    bool& known = data[{edge.from, edge.to}];
    known = known || edge.data;
  }
  std::vector<DagFigure::Line> lines;
  for (const bool wanted : {false, true}) {
    for (const auto& [ends, is_data] : data) {
      if (is_data == wanted) {
        lines.push_back({ends.first,
                         ends.second,
                         is_data ? DagFigure::LineKind::Data : DagFigure::LineKind::Order,
                         ""});
      }
    }
  }
  for (int n = 0; n < dag.size(); ++n) {
    if (dag.node(n).kind == DagKind::Send) {
      lines.push_back({n, dag.node(n).peer, DagFigure::LineKind::Transfer, ""});
    } else if (is_collective(dag.node(n).kind)) {
      // The members of one collective, from list to list: gradients move between them.
      const std::vector<int> members = members_of(dag, n);
      const auto next = std::ranges::upper_bound(members, n);
      if (next != members.end()) {
        lines.push_back({n, *next, DagFigure::LineKind::Transfer, ""});
      }
    }
  }
  return lines;
}

/// Draws lines between the nodes of a figure.
class DagRouter {
 public:
  DagRouter(const TrainingDag& dag, const std::vector<DagFigure::Spot>& spots)
      : dag_(dag), spots_(spots) {
    std::map<LaneKey, std::set<int>> columns;
    for (int n = 0; n < dag.size(); ++n) {
      columns[lane_of(n)].insert(spot(n).column);
    }
    for (const auto& [lane, in_lane] : columns) {
      int position = 0;
      for (const int column : in_lane) {
        position_[{lane, column}] = position++;
      }
    }
  }

  [[nodiscard]] std::string path(int from, int to) const {
    const DagFigure::Spot& a = spot(from);
    const DagFigure::Spot& b = spot(to);
    const double x0 = a.x + DagFigure::kNodeWidth;
    const double y0 = a.y + DagFigure::kNodeHeight / 2;
    const double y1 = b.y + DagFigure::kNodeHeight / 2;
    if (lane_of(from) != lane_of(to)) {
      const double bend = std::clamp((b.x - x0) / 2, 14.0, 60.0);
      return fmt::format("M{:.1f} {:.1f}C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}",
                         x0,
                         y0,
                         x0 + bend,
                         y0,
                         b.x - bend,
                         y1,
                         b.x,
                         y1);
    }
    if (is_free_between(from, to)) {
      return fmt::format("M{:.1f} {:.1f}H{:.1f}", x0, y0, b.x);
    }
    return arc(a, b, position_.at({lane_of(from), a.column}));
  }

 private:
  using LaneKey = std::pair<int, int>;

  [[nodiscard]] const DagFigure::Spot& spot(int n) const {
    return spots_[static_cast<std::size_t>(n)];
  }
  [[nodiscard]] LaneKey lane_of(int n) const { return {dag_.node(n).place, dag_.node(n).stream}; }

  [[nodiscard]] bool is_free_between(int from, int to) const {
    return position_.at({lane_of(to), spot(to).column}) ==
           position_.at({lane_of(from), spot(from).column}) + 1;
  }

  /// Returns a curve in the room above the lane. Curves from neighbors have different heights, so
  /// that they do not cover each other.
  [[nodiscard]] static std::string arc(const DagFigure::Spot& a,
                                       const DagFigure::Spot& b,
                                       int position) {
    constexpr int kHeights = 4;
    const double height = 12 + 6 * (kHeights - 1 - position % kHeights);
    const double x0 = a.x + DagFigure::kNodeWidth * 0.62;
    const double x1 = b.x + DagFigure::kNodeWidth * 0.38;
    return fmt::format("M{:.1f} {:.1f}C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}",
                       x0,
                       a.y,
                       x0 + 14,
                       a.y - height,
                       x1 - 14,
                       b.y - height,
                       x1,
                       b.y);
  }

  const TrainingDag& dag_;
  const std::vector<DagFigure::Spot>& spots_;
  std::map<std::pair<LaneKey, int>, int> position_;  // in its lane, by lane and column
};

std::set<int> streams_in(const TrainingDag& dag, const std::vector<int>& list) {
  std::set<int> streams;
  for (const int n : list) {
    streams.insert(dag.node(n).stream);
  }
  return streams;
}

}  // namespace

DagFigure::DagFigure(const IssuedDag& issued) {
  const TrainingDag& dag = issued.dag;
  check_dag_size(dag);
  const std::vector<int> columns = dag_columns(issued);
  spots.resize(dag.nodes.size());
  left = kLaneNames;
  double y = kTitleHeight;
  std::set<int> used;
  int last = 0;
  for (std::size_t place = 0; place < issued.lists.size(); ++place) {
    Cluster cluster{.place = static_cast<int>(place), .top = y, .lanes = {}};
    y += kHeading;
    std::map<int, double> top_of;
    for (const int stream : streams_in(dag, issued.lists[place])) {
      cluster.lanes.push_back({stream, y});
      top_of[stream] = y;
      used.insert(stream);
      y += kLaneHeight;
    }
    for (std::size_t i = 0; i < issued.lists[place].size(); ++i) {
      const auto n = static_cast<std::size_t>(issued.lists[place][i]);
      last = std::max(last, columns[n]);
      spots[n] = {.column = columns[n],
                  .turn = static_cast<int>(i) + 1,
                  .x = left + kLanePadding + kColumn * columns[n],
                  .y = top_of.at(dag.nodes[n].stream) + kLaneHeight - kNodeHeight - 6};
    }
    cluster.bottom = y + 4;
    y = cluster.bottom + kClusterGap;
    clusters.push_back(std::move(cluster));
  }
  bottom = y - kClusterGap;
  streams.assign(used.begin(), used.end());
  width = left + 2 * kLanePadding + kColumn * last + kNodeWidth + kClusterMargin;
  lines = dag_lines(dag);
  const DagRouter router(dag, spots);
  for (Line& line : lines) {
    line.path = router.path(line.from, line.to);
  }
}

}  // namespace stagecraft::drawing
