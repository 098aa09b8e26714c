/// Measurements holds the means over the measured steps of a run, and why its rows were idle.
///
/// The caller adds steps one by one. Only sums are kept, so a run may have any length. The bill of
/// a row uses the simulator's terms (simulate.h), plus one that only a real machine has: overhead.
///
///     first task of any row                                             last task of any row
///     |<-- warm-up -->|task|<- dependency ->|<- transfer ->|<- overhead ->|task|<-- drain -->|
///                          until it was made  until it came  until it ran
///
/// A value; one thread at a time.
/// MM-1: busy and the causes add up to the makespan, for every row.
/// MM-2: the first step is left out if there is another, because it allocates memory that later
///       steps reuse.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "stagecraft/scheduler/costs/costs.h"
#include "stagecraft/scheduler/measured/measured_step.h"
#include "stagecraft/scheduler/simulate/simulate.h"

namespace stagecraft {

/// Bill divides the makespan of a row into its uses.
struct Bill {
  double busy = 0;
  Bubbles bubbles;
  double overhead = 0;  ///< between tasks, although all inputs were there

  [[nodiscard]] double idle() const {
    return bubbles.warm_up + bubbles.dependency + bubbles.transfer + bubbles.drain + overhead;
  }
};

/// Surroundings holds the time of a row in a step outside the makespan.
struct Surroundings {
  double start = 0;   ///< before the first task of any row
  double vote = 0;    ///< votes and sums over replicas, after the last task of any row
  double update = 0;  ///< the optimizer, also after the last task of any row
  double other = 0;   ///< the rest, likewise
};

class Measurements {
 public:
  void add(const MeasuredStep& step);

  /// Returns the number of steps counted, without one left out.
  [[nodiscard]] int steps() const { return steps_; }
  [[nodiscard]] std::size_t rows() const { return rows_.size(); }
  // All functions below return means over steps.
  // Requires: steps() > 0.
  /// Returns the time from the start of the first task of any row to the end of the last.
  [[nodiscard]] double makespan() const { return makespan_ / steps_; }
  [[nodiscard]] Bill bill(std::size_t row) const;
  [[nodiscard]] Surroundings surroundings(std::size_t row) const;
  /// Returns the tasks of a row with their times, counted from the start of the first task of any
  /// row.
  [[nodiscard]] std::map<Task, TimeSpan> tasks(std::size_t row) const;
  /// Returns the mean duration of each stage's tasks, 0 for a kind that never ran. The latency of a
  /// link is the mean time from the end of a task to the arrival of its result.
  [[nodiscard]] Costs costs() const;

 private:
  struct Row {
    Bill bill;
    Surroundings surroundings;
    std::map<Task, TimeSpan> tasks;
  };
  struct Mean {
    double sum = 0;
    int count = 0;

    void add(double value) {
      sum += value;
      ++count;
    }
    [[nodiscard]] double value() const { return count == 0 ? 0 : sum / count; }
  };

  void add_transfers(const MeasuredRow& row, int number);

  int added_ = 0;
  int steps_ = 0;
  double makespan_ = 0;
  std::vector<Row> rows_;
  std::map<std::pair<StageId, CellKind>, Mean> durations_;
  std::map<std::pair<int, int>, Mean> links_;  // by (from row, to row)
};

/// Returns the bill of a simulated row, which has no overhead.
[[nodiscard]] Bill bill_of(const RowTimeline& row);

}  // namespace stagecraft
