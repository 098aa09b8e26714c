#include "stagecraft/tests/faults/checked_training.h"

#include <algorithm>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/actors/trainer/execution.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"

namespace stagecraft::tests {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

void require_blamed(const Error& error, Errc code, Rank rank) {
  require(error.code() == code && error.context().rank == rank,
          fmt::format("expected {} of rank {}, the step failed with {}: {}",
                      to_string(code),
                      rank.value,
                      to_string(error.code()),
                      error.what()));
}

Program make_wide_program(int stages) {
  return make_program({.stages = stages, .width = 256});
}

namespace {

Execution in_two_copies(const CheckedTraining::TwoCopies& copies) {
  // Each copy would have running statistics of its own samples, so it has none.
  const Program program = make_program(
      {.stages = 2, .statistics = false, .width = 256, .experts = copies.divided.empty() ? 0 : 4});
  const Schedule schedule = Schedule::parse(
      "@place 0=0,2 1=1,3\n" + to_string(one_f_one_b(StageGraph::chain(2), kMicrobatches / 2)));
  return make_execution(program, schedule, copies.sums, copies.divided);
}

Course course_of(const CheckedTraining::TwoCopies& copies) {
  Execution execution = in_two_copies(copies);
  return copies.divided.empty()
             ? Course(execution.sized,
                      std::make_shared<const SumOrder>(sum_order_of(*execution.plan)))
             : Course(std::move(execution));
}

}  // namespace

CheckedTraining::CheckedTraining(const Cluster& cluster, int stages)
    : course_(make_wide_program(stages)),
      cluster_(cluster),
      trainer_(cluster_,
               make_wide_program(stages),
               make_schedule("1f1b", make_wide_program(stages)),
               course_optimizer(),
               {.seed = kCourseSeed, .mirror = true}) {
  save();
}

CheckedTraining::CheckedTraining(const Cluster& cluster, const TwoCopies& copies)
    : course_(course_of(copies)),
      cluster_(cluster),
      trainer_(cluster_,
               in_two_copies(copies),
               course_optimizer(),
               {.seed = kCourseSeed, .mirror = copies.mirror}) {
  save();
}

StepFuture CheckedTraining::begin_step() {
  const Data batch = data(trainer_.steps());
  return trainer_.step(batch.inputs, batch.labels);
}

void CheckedTraining::check(const StepResult& result) {
  const ReferenceStep& expected = course_.after(result.step).result;
  require(
      result.losses == expected.losses && result.gradient_norm == expected.gradient_norm,
      fmt::format("step {} has other losses than in the unbroken run: {}, not {}; norm {}, not {}",
                  result.step,
                  fmt::join(result.losses, " "),
                  fmt::join(expected.losses, " "),
                  result.gradient_norm,
                  expected.gradient_norm));
  require(trainer_.steps() == result.step, "steps() is not the step that succeeded");
  step_seconds_ = 0.9 * step_seconds_ + 0.1 * std::min(result.seconds, 0.5);
  ++steps_;
}

namespace {

/// Returns the tensors without those that no stage uses, of which the unbroken run knows nothing.
StateDict used(StateDict all, const StateDict& of_stages) {
  std::erase_if(all, [&](const auto& tensor) {
    return std::ranges::none_of(of_stages,
                                [&](const auto& known) { return known.first == tensor.first; });
  });
  return all;
}

}  // namespace

void CheckedTraining::check_state(const std::string& when) {
  const Expected& expected = course_.after(trainer_.steps());
  require(same_bits(used(weights_of(trainer_), expected.weights), expected.weights),
          "other weights than in the unbroken run " + when);
  require(same_bits(used(buffers_of(trainer_), expected.buffers), expected.buffers),
          "other buffers than in the unbroken run " + when);
}

void CheckedTraining::save() {
  trainer_.save(file_);
  saved_ = trainer_.steps();
}

std::optional<Failure> CheckedTraining::strike_and_train(
    std::optional<std::chrono::microseconds> delay,
    const std::function<void()>& strike,
    milliseconds limit,
    int steps) {
  StepFuture step;
  if (delay) {
    step = begin_step();
    const auto when = Clock::now() + *delay;
    while (Clock::now() < when) {
      std::this_thread::yield();
    }
  }
  const auto struck = Clock::now();
  strike();
  for (int i = 0; i < steps; ++i) {
    const std::int64_t before = trainer_.steps();
    if (!step.valid()) {
      step = begin_step();
    }
    require(step.wait_until(Clock::now() + limit),
            fmt::format("a step has neither ended nor failed {} s after it was struck",
                        limit.count() / 1000));
    try {
      check(step.get());
    } catch (const Error& error) {
      require(trainer_.steps() == before, "a step that failed was counted");
      return Failure{error, seconds_since(struck)};
    }
    step = StepFuture();
  }
  return std::nullopt;
}

Failure CheckedTraining::strike_and_save(std::chrono::microseconds delay,
                                         bool trains,
                                         const std::function<void()>& strike,
                                         milliseconds limit) {
  const auto when = Clock::now() + delay;
  std::thread striker([&] {
    std::this_thread::sleep_until(when);
    strike();
  });
  std::optional<Error> failure;
  while (!failure && Clock::now() < when + limit) {
    try {
      if (trains) {
        train_step();
      }
      save();
    } catch (const Error& error) {
      failure = error;
    }
  }
  striker.join();
  require(failure.has_value(), "saves continue without a worker");
  const double seconds = seconds_since(when);
  require(seconds < std::chrono::duration<double>(limit).count(),
          fmt::format("a save has failed only {} s after it was struck", seconds));
  return {*failure, seconds};
}

void CheckedTraining::recover() {
  const std::int64_t committed = trainer_.steps();
  const std::int64_t back = trainer_.recover();
  // The state may be one update ahead of the driver's count: all ranks had changed their weights,
  // and the report of it was lost.
  require(back + 1 >= committed && back <= committed + 1,
          fmt::format("recover() went to {} after {} steps", back, committed));
}

void CheckedTraining::load() {
  trainer_.load(file_);
  require(trainer_.steps() == saved_, "load() did not go to where the file was saved");
}

double CheckedTraining::mend(const std::vector<Rank>& lost, bool recovers) {
  const auto begun = Clock::now();
  for (const Rank rank : lost) {
    cluster_.replace(rank);
  }
  bool loads = !recovers;
  if (recovers) {
    try {
      recover();
    } catch (const Error& error) {
      // Only copies may have no whole state: if a rank is lost in the instant of the vote.
      if (trainer_.options().mirror || error.code() != Errc::WorkerLost) {
        throw;
      }
      loads = true;
    }
  }
  if (loads) {
    load();
  }
  train_step();
  const double seconds = seconds_since(begun);
  check_state(loads ? "after load()" : "after recover()");
  return seconds;
}

double CheckedTraining::go_on(std::int64_t steps) {
  const auto begun = Clock::now();
  require(trainer_.steps() == steps, "a step that failed was counted");
  check_state("after a step that failed");
  train_step();
  return seconds_since(begun);
}

}  // namespace stagecraft::tests
