/// Measurements: the means over the measured steps of a run, and why its rows stood idle.
///
/// Fed step by step; keeps sums only, so a run may be of any length. The bill of a row uses the
/// simulator's words (simulate.h), and one more for what only a real machine has:
///
///     first task of any row                                             last task of any row
///     |<-- warm-up -->|task|<- dependency ->|<- transfer ->|<- overhead ->|task|<-- drain -->|
///                          until it was made  until it came  until it ran
///
/// A value; one thread at a time.
/// MM-1: busy and the causes add up to the makespan, for every row.
/// MM-2: the first step is left out as soon as there is another: it allocates what later ones
/// reuse.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "stagecraft/scheduler/costs.h"
#include "stagecraft/scheduler/measured_step.h"
#include "stagecraft/scheduler/simulate.h"

namespace stagecraft {

/// How a row spent the makespan.
struct Bill {
  double busy = 0;
  Bubbles bubbles;
  double overhead = 0;  ///< between tasks, though all that was needed was there

  [[nodiscard]] double idle() const {
    return bubbles.warm_up + bubbles.dependency + bubbles.transfer + bubbles.drain + overhead;
  }
};

/// What a row did in a step outside the makespan.
struct Surroundings {
  double start = 0;   ///< before the first task of any row
  double vote = 0;    ///< votes and sums over replicas, behind the last task of any row
  double update = 0;  ///< the optimizer, likewise
  double other = 0;   ///< likewise
};

class Measurements {
 public:
  void add(const MeasuredStep& step);

  /// Steps counted, without one left out.
  [[nodiscard]] int steps() const { return steps_; }
  [[nodiscard]] std::size_t rows() const { return rows_.size(); }
  // All that follows are means over steps. Requires: steps() > 0.
  /// From the first task of any row to the end of the last.
  [[nodiscard]] double makespan() const { return makespan_ / steps_; }
  [[nodiscard]] Bill bill(std::size_t row) const;
  [[nodiscard]] Surroundings surroundings(std::size_t row) const;
  /// By row; since the first task of any row began.
  [[nodiscard]] std::map<Task, TimeSpan> tasks(std::size_t row) const;
  /// The mean duration of each stage's tasks, 0 for a kind that never ran; per link the mean time
  /// from the end of a task to the arrival of what it made, as latency.
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

/// The bill of a simulated row: without overhead.
[[nodiscard]] Bill bill_of(const RowTimeline& row);

}  // namespace stagecraft
