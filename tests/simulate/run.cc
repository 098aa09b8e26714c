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
#include "stagecraft/tests/simulate/shape.h"

namespace stagecraft::simulation {
namespace {

using namespace std::chrono_literals;

/// Known is what all runs of a shape share: the unbroken run. It advances outside of simulations,
/// because it does not have their clock.
class Known {
 public:
  explicit Known(const Shape& shape)
      : execution(execution_of(shape.way, shape.ranks)), course_(make_course_of(shape)) {
    for (const std::string& way : other_ways(shape.way, shape.ranks)) {
      others.emplace_back(way, &execution_of(way, shape.ranks));
    }
  }

  /// Trains, and evaluates if the shape does, up to this number of updates.
  void advance(std::int64_t updates, bool evaluates) {
    (void)course_.after(updates);
    while (evaluates && std::ssize(evaluations_) <= updates) {
      if (!on_threads_) {
        const int ranks = execution.layout.ranks();
        on_threads_.emplace(Cluster::local(ranks), execution, tests::course_optimizer());
      }
      const std::int64_t step = std::ssize(evaluations_);
      StateDict state = course_.after(step).weights;
      const StateDict& buffers = course_.after(step).buffers;
      state.insert(state.end(), buffers.begin(), buffers.end());
      for (auto& [name, tensor] : on_threads_->state_dict()) {  // those that no stage uses
        if (std::ranges::none_of(state, [&](const auto& known) { return known.first == name; })) {
          state.emplace_back(name, tensor);
        }
      }
      on_threads_->load_state_dict(state);
      const tests::Data batch = tests::data(step);
      evaluations_.push_back(on_threads_->evaluate(batch.inputs, batch.labels));
    }
  }

  [[nodiscard]] const tests::Expected& after(std::int64_t updates) {
    return course_.after(updates);
  }
  /// Returns the mean loss of the next step's batch.
  [[nodiscard]] double evaluation_after(std::int64_t updates) const {
    return evaluations_[static_cast<std::size_t>(updates)];
  }

  const Execution& execution;
  std::vector<std::pair<std::string, const Execution*>> others;  ///< which read its checkpoints

 private:
  tests::Course course_;
  std::vector<double> evaluations_;
  std::optional<tests::Trainer> on_threads_;
};

Known& known(const Shape& shape) {
  static std::map<std::string, std::unique_ptr<Known>> all;
  Shape same_bits = shape;
  same_bits.mirror = true;
  same_bits.evaluates = false;
  std::unique_ptr<Known>& one = all[same_bits.text()];
  if (one == nullptr) {
    one = std::make_unique<Known>(shape);
  }
  return *one;
}

/// Draws of the faults, of the shape and of the order of events must not depend on each other.
constexpr std::uint64_t kOfFaults = 0x9e3779b97f4a7c15, kOfShape = 0xd1b54a32d192ed03;

Shape shape_of(std::uint64_t seed, const RunOptions& options) {
  Random random(seed ^ kOfShape);
  return draw_shape(random, options.ranks, options.way);
}

/// A fault may fail several calls one after the other.
constexpr int kMostFailures = 4;

class Run {
 public:
  Run(std::uint64_t seed, const RunOptions& options)
      : options_(options),
        shape_(shape_of(seed, options)),
        known_(known(shape_)),
        world_(seed),
        network_(std::make_shared<Network>(world_)),
        processes_(std::make_shared<Processes>(*network_, options.ranks)) {
    known_.advance(options.steps + 2, shape_.evaluates);
    world_.tell("driver", shape_.text());
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
        get_on(cluster, trainer);
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

  /// Makes a trainer, or brings its state back after a failure: from mirrors or copies, from the
  /// newest checkpoint if they have no whole state, else by another trainer.
  void begin(const Cluster& cluster, std::optional<tests::Trainer>& trainer) {
    if (!trainer) {
      trainer.emplace(cluster, known_.execution, tests::course_optimizer(), trainer_options());
      needs_state_ = has_stepped_ = false;
      lost_.clear();
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
        world_.tell("driver", fmt::format("has no whole state: {}", error.what()));
        require(!mirrors_are_whole(),
                "no whole state is in the mirrors, though no rank was lost with its keeper");
        require(!copies_are_whole(error),
                "copies have no whole state, though of each stage one is left");
        if (!kept_) {
          trainer.reset();
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

  [[nodiscard]] TrainerOptions trainer_options() const {
    const tests::CourseOptions bits = shape_.course_options();
    return {.clip = bits.clip,
            .loss_scaling = bits.loss_scaling,
            .seed = tests::kCourseSeed,
            .mirror = shape_.mirror,
            .step_deadline = patience_};
  }

  /// Ends the trainer. One that trains in another way loads the checkpoint and makes one, from
  /// which this run goes on.
  void move(const Cluster& cluster, std::optional<tests::Trainer>& trainer) {
    trainer.reset();
    const auto& [way, execution] = known_.others[world_.random().below(known_.others.size())];
    tests::Trainer reader(cluster, *execution, tests::course_optimizer(), trainer_options());
    reader.load(*kept_);
    world_.tell("driver", fmt::format("loaded step {} to train by {}", reader.steps(), way));
    check_state(reader);
    Checkpoint again = reader.checkpoint();
    require(again.step == kept_->step && by_name(again) == by_name(*kept_),
            "a checkpoint is another one after it was loaded in another way");
    kept_ = std::move(again);
  }

  /// Compares by bits.
  struct Content {
    std::map<std::string, at::Tensor> tensors;
    bool operator==(const Content& other) const {
      return std::ranges::equal(tensors, other.tensors, [](const auto& a, const auto& b) {
        return a.first == b.first && at::equal(a.second, b.second);
      });
    }
  };
  static Content by_name(const Checkpoint& checkpoint) {
    Content content;
    for (const StateTensor& state : checkpoint.tensors) {
      content.tensors.emplace(state.name, state.tensor);
    }
    return content;
  }

  /// Says whether a rank and the keeper of its copies, the next one, were lost since the last step.
  [[nodiscard]] bool lost_with_keeper() const {
    return std::ranges::any_of(
        lost_, [this](int rank) { return lost_.contains((rank + 1) % options_.ranks); });
  }

  [[nodiscard]] bool mirrors_are_whole() const {
    return shape_.mirror && has_stepped_ && !lost_with_keeper();
  }

  /// Says whether copies of stages have to give a state, though recover() has found none.
  [[nodiscard]] bool copies_are_whole(const Error& error) const {
    if (!shape_.has_whole_copies()) {
      return false;
    }
    const int pipeline = shape_.ranks / shape_.copies();
    for (int r = 0; r < pipeline; ++r) {
      bool is_left = false;
      for (int copy = r; copy < shape_.ranks; copy += pipeline) {
        is_left = is_left || !lost_.contains(copy);
      }
      if (!is_left) {
        return false;
      }
    }
    // Others have made the update, or have not, and no rank of this stage is one of them.
    const std::string_view text = error.what();
    std::set<std::string_view> updates;
    constexpr std::string_view kBefore = "those after ";
    for (std::size_t at = text.find(kBefore); at != text.npos; at = text.find(kBefore, at + 1)) {
      const std::string_view rest = text.substr(at + kBefore.size());
      updates.insert(rest.substr(0, rest.find(' ')));
    }
    return updates.size() == 1;
  }

  /// Says whether recover() has found out that neither mirrors nor copies suffice.
  static bool has_no_state(const Error& error) {
    return error.code() == Errc::WorkerLost &&
           std::string_view(error.what()).starts_with("there is no state of which ");
  }

  /// Makes steps to the end of the run, with a checkpoint now and then.
  void get_on(const Cluster& cluster, std::optional<tests::Trainer>& trainer) {
    while (trainer->steps() < options_.steps) {
      if (!kept_ || world_.random().one_in(4)) {
        kept_ = trainer->checkpoint();
        check_kept();
        world_.tell("driver", fmt::format("has a checkpoint of step {}", trainer->steps()));
        if (!known_.others.empty() && world_.random().one_in(12)) {
          move(cluster, trainer);
          begin(cluster, trainer);
        }
      }
      if (shape_.evaluates) {
        evaluate(*trainer);
      }
      step(*trainer);
    }
    check_state(*trainer);
    is_done_ = true;
  }

  void evaluate(tests::Trainer& trainer) {
    const tests::Data batch = tests::data(trainer.steps());
    const double loss = trainer.evaluate(batch.inputs, batch.labels);
    const double expected = known_.evaluation_after(trainer.steps());
    require(loss == expected,
            fmt::format("an evaluation after step {} finds {}, not {} as in the unbroken run",
                        trainer.steps(),
                        loss,
                        expected));
    world_.tell("driver", "has evaluated");
  }

  void step(tests::Trainer& trainer) {
    const std::int64_t before = trainer.steps();
    const auto begun = world_.clock().now();
    const std::int64_t last = (before + 1) * shape_.batches - 1;
    for (std::int64_t i = before * shape_.batches; i < last; ++i) {
      const tests::Data batch = tests::data(i);
      trainer.accumulate(batch.inputs, batch.labels);
    }
    const tests::Data batch = tests::data(last);
    const StepResult result = trainer.step(batch.inputs, batch.labels).get();
    require(result.step == before + 1, "a step has another number");
    const ReferenceStep& expected = known_.after(result.step).result;
    require(result.losses == expected.losses,
            fmt::format("step {} has other losses than in the unbroken run: {}, not {}",
                        result.step,
                        fmt::join(result.losses, " "),
                        fmt::join(expected.losses, " ")));
    require(result.skipped == expected.skipped &&
                (result.skipped || result.gradient_norm == expected.gradient_norm),
            fmt::format("step {} has a gradient of norm {}, not {} as in the unbroken run",
                        result.step,
                        result.gradient_norm,
                        expected.gradient_norm));
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
      require(processes_->has_ended(rank),
              fmt::format("rank {} is said to be lost, and lives", rank.value));
      require(text.find(processes_->cause(rank)) != std::string_view::npos ||
                  text.find("its worker has ended") != std::string_view::npos,
              fmt::format("another cause is told than \"{}\"", processes_->cause(rank)));
    }
  }

  void check_kept() {
    const tests::Expected& expected = known_.after(kept_->step);
    check_kept("weight:", expected.weights);
    check_kept("buffer:", expected.buffers);
  }
  void check_kept(const std::string& kind, const StateDict& expected) {
    for (const auto& [name, tensor] : expected) {
      const auto found = std::ranges::find(kept_->tensors, kind + name, &StateTensor::name);
      require(found != kept_->tensors.end() && at::equal(found->tensor, tensor),
              fmt::format("a checkpoint has other bits than the unbroken run: {}{}", kind, name));
    }
  }

  void check_state(tests::Trainer& trainer) {
    const tests::Expected& expected = known_.after(trainer.steps());
    StateDict weights = tests::weights_of(trainer);
    std::erase_if(weights, [&](const auto& weight) {  // of which no stage knows
      return std::ranges::none_of(expected.weights,
                                  [&](const auto& known) { return known.first == weight.first; });
    });
    require(tests::same_bits(weights, expected.weights),
            fmt::format("other weights than in the unbroken run after step {}", trainer.steps()));
  }

  static void require(bool kept, const std::string& promise) {
    if (!kept) {
      throw Violation(promise);
    }
  }

  const RunOptions options_;
  const Shape shape_;
  Known& known_;
  World world_;
  const std::shared_ptr<Network> network_;
  const std::shared_ptr<Processes> processes_;
  std::optional<Checkpoint> kept_;
  int struck_ = 0, recoveries_ = 0;
  /// So short in some runs that faults make steps late.
  const std::chrono::milliseconds patience_ = world_.random().one_in(3) ? 500ms : 20000ms;
  std::set<int> lost_;  ///< ranks that were lost since the last step
  int failures_ = 0;
  bool has_stepped_ = false;  ///< so mirrors have copies
  bool needs_state_ = false, is_done_ = false;
};

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
