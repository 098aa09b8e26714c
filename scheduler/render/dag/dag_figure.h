/// DagFigure holds the positions of nodes, lanes and edges in a picture of a training DAG.
///
///     ranks [0]                      A cluster for each rank list. It has a lane for each stream
///       compute  0F0 0F1 ... 0B0     that has nodes. Lengths are CSS pixels; y grows downwards.
///       send       s   s             The page shows the same picture (html/dag_page.h).
///     ranks [1]
///       ...
///
/// DPI-1: in a lane, nodes stand in the order in which the ranks issue them, each in a column of
///        its own. No node stands left of one that its ranks issue earlier.
/// DPI-2: a node stands right of all nodes that it waits for, those of other ranks included, unless
///        the lists contradict that.
/// Private to render/. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "stagecraft/scheduler/dag/issue/issue.h"

namespace stagecraft::drawing {

struct DagFigure {
  static constexpr double kNodeWidth = 52;
  static constexpr double kNodeHeight = 30;
  static constexpr double kColumn = 66;
  static constexpr double kLaneHeight = 56;  ///< room for curves above the nodes included
  static constexpr double kHeading = 24;     ///< above the first lane of a cluster

  struct Lane {
    int stream = 0;
    double top = 0;
  };
  struct Cluster {
    int place = 0;
    double top = 0, bottom = 0;
    std::vector<Lane> lanes;
  };
  struct Spot {
    int column = 0;
    int turn = 0;         ///< position in the issue list, from 1
    double x = 0, y = 0;  ///< the corner at the upper left
  };
  enum class LineKind : std::uint8_t { Data, Order, Transfer };
  struct Line {
    int from = 0, to = 0;
    LineKind kind = LineKind::Data;
    std::string path;  ///< attribute `d`
  };

  /// Errors: ScheduleParameter for more than kMaxDrawnNodes nodes.
  explicit DagFigure(const IssuedDag& issued);

  std::vector<Cluster> clusters;
  std::vector<Spot> spots;       ///< by node
  std::vector<Line> lines;       ///< each pair of nodes once; data is stronger than order
  std::vector<int> streams;      ///< those with a lane, ascending
  double left = 0;               ///< left end of the lanes
  double width = 0, bottom = 0;  ///< of the lanes
};

}  // namespace stagecraft::drawing
