/// StepGraph holds the tasks of one step of a schedule and the tasks for which they wait, and
/// computes the step's least time.
///
///     0F0 --transfer--> 1F0 --> 1B0 --transfer--> 0B0 --> update of row 0
///      |                 |       |                 ^
///      +--> 0F1 --- ... -+-------+--- row order ---+
///
/// The vertices are the tasks of every row and, after the last, the row's update. They wait for the
/// same events as in simulate(), plus extra orders that the caller gives. A StepGraph is made once
/// for a schedule; planners then run it for very many cuts, which differ only in weights. One
/// thread.
/// Source: "Pfeife: Automatic Pipeline Parallelism for PyTorch", section 3.2.
/// SQ-1: a run costs a pass over vertices and waits, and allocates nothing.
/// SQ-2: nothing waits for a transfer that takes kNoTransfer. So one graph over all edges that cuts
///       may have also serves cuts that lack some.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"
#include "stagecraft/scheduler/model/task_graph.h"
#include "stagecraft/scheduler/simulate/event_order.h"

namespace stagecraft {

/// StepTransfers selects the transfers that are vertices of their own, and so may be ordered.
enum class StepTransfers : std::uint8_t {
  Delays,    ///< only those that an order names; the others are delays
  Vertices,  ///< all transfers between two rows
};

class StepGraph {
 public:
  using Edge = StageGraph::Edge;
  static constexpr double kNoTransfer = -std::numeric_limits<double>::infinity();
  static constexpr int kMissing = -1;

  /// `stages`: the graph of the schedule's stages, each replica apart. All weights start at 0.
  /// Errors: ScheduleInvalid if a task waits for one that is missing or, also by the orders, for
  /// itself; and for an order of a task or transfer that does not exist. It names the first order
  /// at fault.
  StepGraph(const Schedule& schedule,
            const StageGraph& stages,
            std::span<const EventOrder> orders = {},
            StepTransfers transfers = StepTransfers::Delays);

  // Weights. Units: any single unit of time.
  void set_duration(StageId stage, CellKind kind, double time) {
    weights_[static_cast<std::size_t>(duration_weight(stage, kind))] = time;
  }
  /// `edge`: its place in edges().
  void set_transfer(std::size_t edge, double forward, double backward) {
    weights_[first_edge_ + 2 * edge] = forward;
    weights_[first_edge_ + 2 * edge + 1] = backward;
  }
  /// Adds to the update after the last task of the row. The update is 0 at first, and after
  /// clear_updates().
  void add_update(int row, double time) {
    weights_[first_row_ + static_cast<std::size_t>(row)] += time;
  }
  void clear_updates() {
    std::fill(weights_.begin() + static_cast<std::ptrdiff_t>(first_row_),
              weights_.begin() + static_cast<std::ptrdiff_t>(first_edge_),
              0.0);
  }
  [[nodiscard]] const std::vector<Edge>& edges() const { return edges_; }

  /// Runs the graph and returns the time at which the last row has ended.
  double run();
  /// Returns the critical path of the last run: events that each start when the one before has
  /// ended, up to the last to end. A row's update has no stage.
  [[nodiscard]] std::vector<StepEvent> critical_path() const;

  // Vertices have numbers that do not change.
  [[nodiscard]] int vertices() const { return static_cast<int>(events_.size()); }
  [[nodiscard]] const StepEvent& event(int vertex) const {
    return events_[static_cast<std::size_t>(vertex)];
  }
  /// Returns the event's vertex; kMissing if the event is no vertex.
  [[nodiscard]] int find(const StepEvent& event) const;
  // The functions below report times of the last run.
  [[nodiscard]] double start(int vertex) const;
  /// Returns the place of the vertex in an order in which each comes after those it waits for.
  [[nodiscard]] int place(int vertex) const { return place_[static_cast<std::size_t>(vertex)]; }
  [[nodiscard]] double end(int vertex) const {
    return ends_[static_cast<std::size_t>(place_[static_cast<std::size_t>(vertex)])];
  }
  /// Adds an order. Errors: ScheduleInvalid if the order makes a circle; then it is not added.
  void add_order(int before, int after);
  /// Adds many orders, for the cost of about one. Errors: likewise; then none is added.
  void add_orders(std::span<const std::pair<int, int>> before_and_after);
  void remove_last_order();

 private:
  /// Wait says that `to` starts no earlier than the end of `from` and the delay.
  struct Wait {
    int from = 0;
    int to = 0;
    int delay = 0;  // a weight
  };
  struct Pred {
    int place = 0;
    int delay = 0;
  };
  /// Sum is a weight that is the sum of others, for a group of tasks.
  struct Sum {
    int weight = 0;
    std::vector<int> parts;
  };

  [[nodiscard]] static int duration_weight(StageId stage, CellKind kind) {
    return 1 + stage.value * kKinds + static_cast<int>(kind);
  }
  [[nodiscard]] int weight_of(const Cell& cell, const StageGraph& stages);
  void number_weights(const TaskGraph& tasks);
  void add_entries(const TaskGraph& tasks, std::span<const EventOrder> orders, bool apart);
  void add_wait(
      const TaskGraph& tasks, int entry, const Task& task, const Task& needed, bool apart);
  [[nodiscard]] int vertex_for(const StepEvent& event, int weight);
  [[nodiscard]] int require(const StepEvent& event, const EventOrder& order) const;
  [[noreturn]] void refuse_circle(std::span<const EventOrder> orders);
  [[nodiscard]] bool sort();

  static constexpr int kKinds = 6;

  std::vector<Edge> edges_;
  std::map<Edge, int> edge_places_;
  std::size_t first_row_ = 0, first_edge_ = 0;
  std::vector<double> weights_;  // 0, then by stage and kind, of rows, of edges, sums
  std::vector<Sum> sums_;
  std::map<std::vector<int>, int> sum_weights_;

  std::vector<StepEvent> events_;  // by vertex
  std::vector<int> vertex_weights_;
  std::map<StepEvent, int> numbers_;
  std::vector<Wait> waits_;
  std::map<StepEvent, bool> ordered_;  // transfers that orders name

  std::vector<int> place_;  // by vertex: its place in the order of a run
  std::vector<int> vertex_at_;
  std::vector<int> weight_at_;   // by place, as all below
  std::vector<int> first_pred_;  // one more than places
  std::vector<Pred> preds_;
  std::vector<double> ends_;
};

}  // namespace stagecraft
