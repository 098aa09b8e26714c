/// Ways measures ways to train one subject on a number of workers, in turns. A way is a cut with a
/// schedule.
///
/// It runs a few steps of each way in turn, round after round, so that noise of the machine affects
/// all ways alike. The predictions come from a profile made before. The first way is the uncut
/// model on one worker: if it misses its prediction, either the machine has changed since the
/// profile or the profile is wrong, independent of cut and schedule.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stagecraft/base/median.h"
#include "stagecraft/bench/plans/plans_subject.h"
#include "stagecraft/scheduler/planners/proposal.h"
#include "stagecraft/stagecraft.h"

namespace stagecraft::bench {

struct WaysOptions {
  int workers = 2;
  bool processes = false;  ///< the workers are processes
  int rounds = 10;
};

/// MeasuredWay holds the result of one way. Units: seconds of a step.
struct MeasuredWay {
  std::string name;
  double predicted = 0;
  double bytes = 0;  ///< predicted for the device that holds the most
  Quartiles seconds;

  /// Returns the measured over the predicted time.
  [[nodiscard]] double missed_by() const { return seconds.median / predicted; }
};

/// Returns "+3.2 %, +0.4 % beside one worker": the measured time relative to the predicted one, and
/// the part of the difference that one worker does not show.
[[nodiscard]] std::string miss_text(double missed_by, double one_worker_by);

class Ways {
 public:
  /// Starts the workers, profiles the subject and adds the way with one worker.
  Ways(Subject subject, const WaysOptions& options);

  /// Adds a way with the cut subject. Without a schedule it is 1F1B.
  void add(const std::string& name,
           const Program& program,
           const std::optional<Schedule>& schedule = std::nullopt);

  /// Measures and returns the ways in the order in which they were added.
  [[nodiscard]] std::vector<MeasuredWay> measure();

  [[nodiscard]] const Subject& subject() const { return subject_; }
  [[nodiscard]] const WaysOptions& options() const { return options_; }
  /// Returns the uncut subject.
  [[nodiscard]] const Program& whole() const { return whole_; }
  [[nodiscard]] int operators() const;
  /// Returns the request for a plan for the workers, which share this machine's processors.
  [[nodiscard]] PlanRequest request() const;

 private:
  struct Way {
    std::string name;
    PlanProposal predicted;
    std::unique_ptr<Trainer> trainer;
    std::vector<double> seconds;
  };
  void add_to(const Cluster& cluster,
              const std::string& name,
              const Program& program,
              const std::optional<Schedule>& schedule);
  void take_turns(int rounds, bool counted);

  Subject subject_;
  WaysOptions options_;
  Cluster cluster_, one_worker_;
  Program whole_;
  Costs costs_;
  std::vector<Way> ways_;
};

}  // namespace stagecraft::bench
