#include "stagecraft/tests/simulate/run.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include <ATen/ops/equal.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/stagecraft.h"
#include "stagecraft/tests/faults/course.h"
#include "stagecraft/tests/integration/models.h"
#include "stagecraft/tests/simulate/cluster.h"

namespace stagecraft::simulation {
namespace {

using namespace std::chrono_literals;

/// The model and its unbroken run, which are the same for all seeds.
struct Known {
  explicit Known(int ranks)
      : program(tests::make_program({.stages = ranks})),
        course(tests::make_program({.stages = ranks})) {}

  Program program;
  tests::Course course;  ///< with a program of its own, whose weights it changes
};

Known& known(int ranks) {
  static std::map<int, std::unique_ptr<Known>> all;
  std::unique_ptr<Known>& one = all[ranks];
  if (one == nullptr) {
    one = std::make_unique<Known>(ranks);
  }
  return *one;
}

/// A fault may fail several calls one after the other.
constexpr int kMostFailures = 4;

class Run {
 public:
  Run(std::uint64_t seed, const RunOptions& options)
      : options_(options),
        known_(known(options.ranks)),
        world_(seed),
        network_(std::make_shared<Network>(world_)),
        processes_(std::make_shared<Processes>(*network_, options.ranks)) {
    (void)known_.course.after(options.steps + 2);  // not on a strand: it waits by the real clock
  }

  RunResult result(const std::vector<Fault>& faults) {
    for (const Fault& fault : faults) {
      world_.at_count(fault.after, [this, fault] {
        if (!is_done_ && strike(fault, *processes_)) {
          ++struck_[static_cast<std::size_t>(fault.kind)];
        }
      });
    }
    RunResult result;
    try {
      world_.run([this] { train(); });
    } catch (const Standstill& standstill) {
      result.violation = standstill.what();
      result.is_stuck = true;
    } catch (const std::exception& violation) {
      result.violation = violation.what();
    }
    result.story = world_.story().text();
    result.faults = struck_;
    result.recoveries = recoveries_;
    result.events = world_.count();
    return result;
  }

 private:
  /// Trains to the end of the run, by one driver after the other.
  void train() {
    while (!is_done_) {
      try {
        drive();
      } catch (const ProcessEnded&) {
        world_.begin_driver();
        world_.tell("driver", "begins again");
        lost_.clear();
      }
    }
  }

  void drive() {
    const Cluster cluster(options_.ranks, processes_);
    std::optional<tests::Trainer> trainer;
    while (!is_done_) {
      try {
        begin(cluster, trainer);
        get_on(*trainer);
      } catch (const Error& error) {
        if (!world_.has_driver()) {
          throw ProcessEnded();
        }
        require(++failures_ <= kMostFailures * (options_.faults + 1), "the run does not get on");
        world_.tell("driver", fmt::format("failed: {}", error.what()));
        blame(error);
        needs_state_ = true;
        for (int r = 0; r < options_.ranks; ++r) {
          if (processes_->is_known_lost(Rank(r))) {
            lost_.insert(r);
            cluster.replace(Rank(r));
          }
        }
      }
    }
  }

  /// Makes a trainer, or brings its state back after a failure: from mirrors, from the newest
  /// checkpoint if they have no whole state, else by another trainer.
  void begin(const Cluster& cluster, std::optional<tests::Trainer>& trainer) {
    if (!trainer) {
      trainer.emplace(
          cluster,
          known_.program,
          tests::make_schedule("1f1b", known_.program),
          tests::course_optimizer(),
          TrainerOptions{.seed = tests::kCourseSeed, .mirror = true, .step_deadline = patience_});
      needs_state_ = has_stepped_ = false;
      world_.tell("driver", "has a trainer");
      if (kept_) {
        load(*trainer);
      }
    }
    if (needs_state_) {
      const std::int64_t before = trainer->steps();
      try {
        const std::int64_t after = trainer->recover();
        world_.tell("driver", fmt::format("recovered step {}", after));
        require(after + 1 >= before && after <= before + 1, "recover() went elsewhere");
        ++recoveries_;
      } catch (const Error& error) {
        if (!has_no_state(error)) {
          throw;
        }
        world_.tell("driver", "has no whole state in its mirrors");
        require(!has_stepped_ || lost_with_keeper(),
                "no whole state is in the mirrors, though no rank was lost with its keeper");
        if (!kept_) {
          {
            const InDestructor reset;
            trainer.reset();
          }
          return begin(cluster, trainer);
        }
        load(*trainer);
      }
      check_state(*trainer);
      needs_state_ = false;
    }
  }

  void load(tests::Trainer& trainer) {
    trainer.load(*kept_);
    world_.tell("driver", fmt::format("loaded step {}", trainer.steps()));
    has_stepped_ = false;
    check_state(trainer);
  }

  /// Says whether a rank and the keeper of its copies, the next one, were lost since the last step.
  [[nodiscard]] bool lost_with_keeper() const {
    return std::ranges::any_of(
        lost_, [this](int rank) { return lost_.contains((rank + 1) % options_.ranks); });
  }

  /// Says whether recover() has found out that mirrors do not suffice.
  static bool has_no_state(const Error& error) {
    return error.code() == Errc::WorkerLost &&
           std::string_view(error.what()).starts_with("there is no state of which all");
  }

  /// Makes steps to the end of the run, with a checkpoint now and then.
  void get_on(tests::Trainer& trainer) {
    while (trainer.steps() < options_.steps) {
      if (!kept_ || world_.random().one_in(4)) {
        kept_ = trainer.checkpoint();
        check_kept();
        world_.tell("driver", fmt::format("has a checkpoint of step {}", trainer.steps()));
      }
      step(trainer);
    }
    check_state(trainer);
    is_done_ = true;
  }

  void step(tests::Trainer& trainer) {
    const std::int64_t before = trainer.steps();
    const tests::Data batch = tests::data(before);
    const auto begun = world_.clock().now();
    const StepResult result = trainer.step(batch.inputs, batch.labels).get();
    require(result.step == before + 1, "a step has another number");
    require(result.losses == known_.course.after(result.step).result.losses,
            fmt::format("step {} has other losses than in the unbroken run: {}, not {}",
                        result.step,
                        fmt::join(result.losses, " "),
                        fmt::join(known_.course.after(result.step).result.losses, " ")));
    has_stepped_ = true;
    lost_.clear();
    world_.tell(
        "driver",
        fmt::format(
            "step {} done after {:.3f} ms",
            result.step,
            std::chrono::duration<double, std::milli>(world_.clock().now() - begun).count()));
  }

  /// A worker that is said to be lost is, and for the cause that is told.
  void blame(const Error& error) {
    if (error.code() != Errc::WorkerLost || !error.context().rank) {
      return;
    }
    const Rank rank = *error.context().rank;
    const std::string_view text = error.what();
    if (text.find(fmt::format("rank {} is lost: ", rank.value)) != std::string_view::npos) {
      require(processes_->is_lost(rank),
              fmt::format("rank {} is said to be lost, and lives", rank.value));
      require(text.find(processes_->cause(rank)) != std::string_view::npos ||
                  text.find("its worker has ended") != std::string_view::npos,
              fmt::format("another cause is told than \"{}\"", processes_->cause(rank)));
    }
  }

  void check_kept() {
    const tests::Expected& expected = known_.course.after(kept_->step);
    for (const auto& [name, tensor] : expected.weights) {
      const auto found = std::ranges::find(kept_->tensors, "weight:" + name, &StateTensor::name);
      require(found != kept_->tensors.end() && at::equal(found->tensor, tensor),
              fmt::format("a checkpoint has other weights than the unbroken run: {}", name));
    }
  }

  void check_state(tests::Trainer& trainer) {
    const tests::Expected& expected = known_.course.after(trainer.steps());
    require(tests::same_bits(tests::weights_of(trainer), expected.weights),
            fmt::format("other weights than in the unbroken run after step {}", trainer.steps()));
  }

  static void require(bool kept, const std::string& promise) {
    if (!kept) {
      throw Violation(promise);
    }
  }

  const RunOptions options_;
  Known& known_;
  World world_;
  const std::shared_ptr<Network> network_;
  const std::shared_ptr<Processes> processes_;
  std::optional<Checkpoint> kept_;
  FaultCounts struck_{};
  int recoveries_ = 0;
  /// So short in some runs that faults make steps late.
  const std::chrono::milliseconds patience_ = world_.random().one_in(3) ? 500ms : 20000ms;
  std::set<int> lost_;  ///< ranks that were lost since the last step
  int failures_ = 0;
  bool has_stepped_ = false;  ///< so mirrors have copies
  bool needs_state_ = false, is_done_ = false;
};

/// Draws of the faults and of the order of events must not depend on each other.
constexpr std::uint64_t kOfFaults = 0x9e3779b97f4a7c15;

}  // namespace

std::vector<Fault> faults_of(std::uint64_t seed, const RunOptions& options) {
  constexpr std::int64_t kEventsOfAStep = 40;  // measured, on each rank
  Random random(seed ^ kOfFaults);
  return draw_faults(
      random, options.faults, options.ranks, kEventsOfAStep * options.steps * options.ranks);
}

RunResult run(std::uint64_t seed, const RunOptions& options, const std::vector<Fault>& faults) {
  auto run = std::make_unique<Run>(seed, options);
  RunResult result = run->result(faults);
  if (result.is_stuck) {
    (void)run.release();  // its threads use it
  }
  return result;
}

RunResult shortened(std::uint64_t seed, const RunOptions& options, RunResult broken) {
  std::vector<Fault> faults = faults_of(seed, options);
  for (std::size_t i = faults.size(); i-- > 0 && !broken.is_stuck;) {
    std::vector<Fault> fewer = faults;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
    RunResult result = run(seed, options, fewer);
    if (!result.violation.empty()) {
      faults = std::move(fewer);
      broken = std::move(result);
    }
  }
  return broken;
}

}  // namespace stagecraft::simulation
