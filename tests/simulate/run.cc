#include "stagecraft/tests/simulate/run.h"

#include <algorithm>
#include <condition_variable>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>
#include <type_traits>
#include <utility>

#include <ATen/ops/equal.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/actors/driver/driver.h"
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

/// Longest time for a call once nothing disturbs it any more: to learn a cause, to ask who waits,
/// and some slow messages.
constexpr auto kPrompt = kCauseLimit + kLossAskLimit + 500ms;

constexpr std::int64_t kAlways = std::numeric_limits<std::int64_t>::max();

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
          ++struck_;
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
  void train() {
    const Cluster cluster(options_.ranks, processes_);
    std::optional<tests::Trainer> trainer;
    while (!is_done_) {
      try {
        begin(cluster, trainer);
        get_on(*trainer);
      } catch (const Error& error) {
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

  /// Calls the trainer, for so many steps. Keeps SI-4 and SI-6.
  template <class Call>
  auto prompt(std::string_view what, int steps, const Call& call) {
    const World::Time begun = world_.clock().now();
    const bool was_whole = !processes_->has_lost();
    const auto check_time = [&](std::string_view outcome) {
      const World::Time since = std::max(begun, last_disturbed());
      require(world_.clock().now() - since <= kPrompt,
              fmt::format("{} {} only {:.3f} s after the last fault",
                          what,
                          outcome,
                          std::chrono::duration<double>(world_.clock().now() - since).count()));
      require(what != "step()" || world_.clock().now() - begun <= steps * longest_step(),
              fmt::format("{} {} long after its deadline", what, outcome));
    };
    try {
      if constexpr (std::is_void_v<decltype(call())>) {
        call();
        check_time("is done");
      } else {
        auto result = call();
        check_time("is done");
        return result;
      }
    } catch (const Error& error) {
      check_time("fails");
      const std::string_view why = error.what();
      require(!was_whole || has_no_state(error) || last_disturbed() > begun,
              fmt::format("{} fails without a fault: {}", what, why));
      require(why.find("was told to abort and has not answered") == std::string_view::npos ||
                  network_->disturbed_until(Plane::Control) > begun,
              fmt::format("an abort is not answered, though no message is late: {}", why));
      throw;
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
      sure_until_ = kAlways;
      world_.tell("driver", "has a trainer");
    }
    if (needs_state_) {
      if (!recover(*trainer) || trainer->steps() > sure_until_) {
        if (!kept_) {
          trainer.reset();
          return begin(cluster, trainer);
        }
        has_stepped_ = false;  // a load drops the copies of before
        prompt("load()", 1, [&] { trainer->load(*kept_); });
        world_.tell("driver", fmt::format("loaded step {}", trainer->steps()));
      }
      sure_until_ = kAlways;
      check_state(*trainer);
      needs_state_ = false;
    }
  }

  /// Brings the state back from mirrors. Returns false if they have no whole one.
  bool recover(tests::Trainer& trainer) {
    const std::int64_t before = trainer.steps();
    try {
      const std::int64_t after = prompt("recover()", 1, [&] { return trainer.recover(); });
      world_.tell("driver", fmt::format("recovered step {}", after));
      require(after + 1 >= before && after <= before + 1, "recover() went elsewhere");
      ++recoveries_;
      return true;
    } catch (const Error& error) {
      if (!has_no_state(error)) {
        throw;
      }
      world_.tell("driver", "has no whole state in its mirrors");
      require(!has_stepped_ || lost_with_keeper(),
              "no whole state is in the mirrors, though no rank was lost with its keeper");
      return false;
    }
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
        kept_ = prompt("checkpoint()", 1, [&] { return trainer.checkpoint(); });
        check_kept();
        world_.tell("driver", fmt::format("has a checkpoint of step {}", trainer.steps()));
      }
      steps(trainer);
    }
    check_state(trainer);
    is_done_ = true;
    pass(std::max(last_disturbed() - world_.clock().now(), World::Time::duration(0)) + 1s);
    require(processes_->bytes_waiting() == 0, "tensors are left that nobody receives");
  }

  /// Lets everything happen that happens within this time.
  void pass(World::Time::duration span) {
    std::mutex mutex;
    std::condition_variable changed;
    std::unique_lock lock(mutex);
    (void)world_.clock().wait_until(
        changed, lock, world_.clock().now() + span, [] { return false; });
  }

  /// Makes a step, or several that are submitted at once.
  void steps(tests::Trainer& trainer) {
    const std::int64_t before = trainer.steps();
    const auto most = static_cast<std::uint64_t>(options_.steps - before);
    const auto count =
        static_cast<int>(1 + world_.random().below(std::min<std::uint64_t>(most, 3)));
    const World::Time begun = world_.clock().now();
    prompt("step()", count, [&] {
      std::vector<StepFuture> made;
      for (int i = 0; i < count; ++i) {
        const tests::Data batch = tests::data(before + i);
        made.push_back(trainer.step(batch.inputs, batch.labels));
      }
      std::optional<Error> failure;
      for (int i = 0; i < count; ++i) {
        try {
          const StepResult result = made[static_cast<std::size_t>(i)].get();
          if (!failure) {
            check(result, before + 1 + i);
          }
          require(!failure || failure->code() != Errc::WorkerLost,
                  "a step runs though weights are undefined");
        } catch (const Error& error) {
          if (!failure) {
            failure = error;
            sure_until_ = i + 1 < count ? before + i : kAlways;
          }
        }
      }
      if (failure) {
        throw Error(*failure);
      }
    });
    world_.tell(
        "driver",
        fmt::format(
            "step {} done after {:.3f} ms",
            before + count,
            std::chrono::duration<double, std::milli>(world_.clock().now() - begun).count()));
  }

  /// Returns the longest time for a step, whatever happens: its deadline, questions to the agents,
  /// the deadlines of its abort and of that of an earlier step, and causes.
  [[nodiscard]] World::Time::duration longest_step() const {
    return patience_ + kAskLimit + 2 * std::max(patience_, kLeastAbortLimit) + kPrompt;
  }

  [[nodiscard]] World::Time last_disturbed() const {
    return std::max(network_->disturbed_until(Plane::Control),
                    network_->disturbed_until(Plane::Data));
  }

  void check(const StepResult& result, std::int64_t number) {
    require(result.step == number, "a step has another number");
    const std::vector<double>& losses = known_.course.after(number).result.losses;
    require(result.losses == losses,
            fmt::format("step {} has other losses than in the unbroken run: {}, not {}",
                        number,
                        fmt::join(result.losses, " "),
                        fmt::join(losses, " ")));
    has_stepped_ = true;
    lost_.clear();
  }

  /// A worker that is said to be lost is, and for the cause that is told. Ranks of a sound plan do
  /// not wait in a circle.
  void blame(const Error& error) {
    require(std::string_view(error.what()).find("waits for itself") == std::string_view::npos,
            "a circle of waits is told, and the plan has none");
    if (error.code() != Errc::WorkerLost || !error.context().rank) {
      return;
    }
    const Rank rank = *error.context().rank;
    const std::string_view text = error.what();
    if (text.find(fmt::format("rank {} is lost: ", rank.value)) != std::string_view::npos) {
      require(processes_->has_ended(rank),
              fmt::format("rank {} is said to be lost, and lives", rank.value));
      require(text.find(processes_->cause(rank)) != std::string_view::npos ||
                  (text.find("its worker has ended") != std::string_view::npos &&
                   !processes_->is_told_in_time(rank)),
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
  int struck_ = 0, recoveries_ = 0;
  /// So short in some runs that faults make steps late.
  const std::chrono::milliseconds patience_ = world_.random().one_in(2) ? 500ms : 20000ms;
  std::set<int> lost_;  ///< ranks that were lost since the last step
  int failures_ = 0;
  bool has_stepped_ = false;  ///< so mirrors have copies
  /// If a step of several has failed, those after it may have changed weights in its place: states
  /// after more updates than this may be of another run than the unbroken one.
  std::int64_t sure_until_ = kAlways;
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
