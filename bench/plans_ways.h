/// Ways: to train one subject on so many workers, each a cut with a schedule, measured in turns.
///
/// A few steps of each way after the other, round after round, so that a noisy machine is noisy for
/// all. What is predicted for a way comes from a profile that is made before. The first way is the
/// model uncut on one worker: by as much as it misses its prediction the machine has changed since
/// the profile, or the profile is wrong, whatever cut and schedule do.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stagecraft/base/median.h"
#include "stagecraft/bench/plans_subject.h"
#include "stagecraft/scheduler/planners/proposal.h"
#include "stagecraft/stagecraft.h"

namespace stagecraft::bench {

struct WaysOptions {
  int workers = 2;
  bool processes = false;  ///< that the workers are
  int rounds = 10;
};

/// Units: seconds of a step.
struct MeasuredWay {
  std::string name;
  double predicted = 0;
  double bytes = 0;  ///< predicted for the device that holds most
  Quartiles seconds;

  /// How many times as long as predicted.
  [[nodiscard]] double missed_by() const { return seconds.median / predicted; }
};

/// "+3.2 %, +0.4 % beside one worker": what was measured over what was predicted, and what of it
/// one worker does not miss as well.
[[nodiscard]] std::string miss_text(double missed_by, double one_worker_by);

class Ways {
 public:
  /// Starts the workers, profiles the subject and adds the way of one worker.
  Ways(Subject subject, const WaysOptions& options);

  /// The subject, cut. Absent: 1F1B.
  void add(const std::string& name,
           const Program& program,
           const std::optional<Schedule>& schedule = std::nullopt);

  /// In the order in which they were added.
  [[nodiscard]] std::vector<MeasuredWay> measure();

  [[nodiscard]] const Subject& subject() const { return subject_; }
  [[nodiscard]] const WaysOptions& options() const { return options_; }
  /// The subject uncut.
  [[nodiscard]] const Program& whole() const { return whole_; }
  [[nodiscard]] int operators() const;
  /// A plan for the workers is asked for, who share this machine's processors.
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
