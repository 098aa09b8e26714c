/// Tests steps whose tasks the driver releases, column by column: they have the bits of the plan,
/// whoever looks sees each column once, and failures end them.
#include <csignal>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "stagecraft/actors/executor/setup/dispatch_columns.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/builders/schedule_for.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/scheduler/simulate/to_array.h"
#include "stagecraft/scheduler/strategy/strategy_of.h"
#include "stagecraft/tests/integration/models.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/error_of.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft::tests {
namespace {
// Names of other tests in the same file of the build would meet these.
namespace dispatch_cases {

using Catch::Matchers::ContainsSubstring;

TrainerOptions by_task(std::function<void(const DispatchedColumn&)> look = {}) {
  TrainerOptions options{.clip = 0.5, .seed = 5, .dispatch = Dispatch::PerTask};
  options.on_column = std::move(look);
  return options;
}

/// Trains by plan and by task, and compares.
void check_equal(const Cluster& cluster, const Program& program, const Schedule& schedule) {
  Trainer plan(cluster, program, schedule, AdamW{.lr = 1e-2}, {.clip = 0.5, .seed = 5});
  Trainer task(cluster, program, schedule, AdamW{.lr = 1e-2}, by_task());
  for (int step = 0; step < 2; ++step) {
    const StepResult expected = step_of(plan, step).get(), found = step_of(task, step).get();
    CHECK(found.losses == expected.losses);
    CHECK(found.gradient_norm == expected.gradient_norm);
  }
  CHECK(same_bits(task.state_dict(), plan.state_dict()));
}

TEST_CASE("by task every builder's schedule has the bits of the plan", "[integration][dispatch]") {
  const Program of_two = make_program({.stages = 2, .dropout = 0.1, .statistics = false});
  const Program of_four = make_program({.stages = 4, .dropout = 0.1, .statistics = false});
  for (const BuilderInfo& builder : builders()) {
    CAPTURE(builder.name);
    const bool both_ways = builder.name == "dualpipe";  // it takes few stages for 4 microbatches
    const Program& program = both_ways ? of_two : of_four;
    check_equal(Cluster::local(8),
                program,
                schedule_for(builder.name, program.stage_graph(), program.microbatches()));
  }
}

TEST_CASE("by task copies and processes have the bits of the plan",
          "[integration][dispatch][processes]") {
  const Program program = make_program({.stages = 2});
  check_equal(Cluster::local(4), program, in_copies(one_f_one_b(2, kMicrobatches / 2), 2));
  check_equal(Cluster::spawn(2), program, make_schedule("1f1b", program));
}

TEST_CASE("whoever looks sees each column once, in order, with what its tasks made",
          "[integration][dispatch]") {
  const Program program = make_program({.stages = 2});
  const Schedule schedule = make_schedule("1f1b", program);
  const Schedule array = to_array(schedule.to_list(), program.stage_graph());
  std::vector<DispatchedColumn> seen;
  Trainer trainer(
      Cluster::local(2), program, schedule, AdamW{}, by_task([&](const DispatchedColumn& column) {
        seen.push_back(column);
      }));
  (void)step_of(trainer, 0).get();
  REQUIRE(seen.size() == array.columns());
  for (std::size_t c = 0; c < seen.size(); ++c) {
    CAPTURE(c);
    CHECK(seen[c].number == c);
    CHECK(seen[c].columns == array.columns());
    std::set<Task> expected, found;
    for (const Schedule::Row& row : array.rows()) {
      if (c < row.size()) {
        expected.insert(row[c].tasks().begin(), row[c].tasks().end());
      }
    }
    for (const DispatchedTask& task : seen[c].tasks) {
      found.insert(task.task);
      CHECK(task.rank == Rank(task.task.stage.value));
    }
    CHECK((found == expected));
  }
  const DispatchedTask& first = seen.front().tasks.front();
  REQUIRE(first.values.size() == 1);  // what stage 1 reads
  CHECK_FALSE(first.values[0].gradient);
  CHECK(first.values[0].norm > 0);
  CHECK_THAT(to_string(seen.front()),
             ContainsSubstring("column 1 of ") && ContainsSubstring("rank 0") &&
                 ContainsSubstring("0F0") && ContainsSubstring("norm "));
}

TEST_CASE("whoever looks may end the step, and nothing changes",
          "[integration][dispatch][failure]") {
  const Program program = make_program({.stages = 2});
  const Schedule schedule = make_schedule("gpipe", program);
  const std::size_t columns = to_array(schedule.to_list(), program.stage_graph()).columns();
  const std::size_t at = GENERATE_COPY(std::size_t{0}, std::size_t{3}, columns - 1);
  CAPTURE(at);
  bool throws = true;
  Trainer trainer(Cluster::local(2), program, schedule, AdamW{}, by_task([&](const auto& column) {
                    if (throws && column.number == at) {
                      throw std::runtime_error("I have seen enough");
                    }
                  }));
  const StateDict before = trainer.state_dict();
  const Error error = error_of(step_of(trainer, 0));
  CHECK_THAT(error.what(),
             ContainsSubstring("on_column threw in column " + std::to_string(at + 1)) &&
                 ContainsSubstring("I have seen enough"));
  CHECK(same_bits(trainer.state_dict(), before));
  throws = false;
  CHECK(step_of(trainer, 0).get().step == 1);
}

TEST_CASE("a failure ends a step that is dispatched by task", "[integration][dispatch][failure]") {
  const Program program = make_program({.stages = 2});
  Trainer trainer(Cluster::local(2), program, make_schedule("1f1b", program), AdamW{}, by_task());
  const Data bad = data_with_bad_token();
  CHECK(error_of(trainer.step(bad.inputs, bad.labels)).context().rank == Rank(0));
  CHECK(step_of(trainer, 0).get().step == 1);
}

TEST_CASE("a lost rank ends a step that is dispatched by task",
          "[integration][dispatch][processes]") {
  const Program program = make_program({.stages = 2});
  const Cluster cluster = Cluster::spawn(2);
  bool kills = false;
  TrainerOptions options = by_task([&](const DispatchedColumn& column) {
    if (kills && column.number == 2) {
      ::kill(static_cast<pid_t>(cluster.workers()[1].process), SIGKILL);
    }
  });
  options.mirror = true;
  Trainer trainer(cluster, program, make_schedule("1f1b", program), AdamW{}, options);
  (void)step_of(trainer, 0).get();
  kills = true;
  CHECK(error_of(step_of(trainer, 1)).code() == Errc::WorkerLost);
  kills = false;
  cluster.replace(Rank(1));
  CHECK(trainer.recover() == 1);
  CHECK(step_of(trainer, 1).get().step == 2);
}

TEST_CASE("by task an update of several batches and an evaluation run as by plan",
          "[integration][dispatch]") {
  const Program program = make_program({.stages = 2});
  const Schedule schedule = make_schedule("1f1b", program);
  Trainer plan(Cluster::local(2), program, schedule, AdamW{}, {.clip = 0.5, .seed = 5});
  Trainer task(Cluster::local(2), program, schedule, AdamW{}, by_task());
  for (Trainer* trainer : {&plan, &task}) {
    const Data first = data(0), second = data(1);
    (void)trainer->accumulate(first.inputs, first.labels);
    (void)trainer->step(second.inputs, second.labels).get();
  }
  CHECK(same_bits(task.state_dict(), plan.state_dict()));
  const Data held_out = data(7);
  CHECK(task.evaluate(held_out.inputs, held_out.labels) ==
        plan.evaluate(held_out.inputs, held_out.labels));
}

TEST_CASE("by task a strategy runs as by plan", "[integration][dispatch]") {
  const Program program = make_program({.stages = 2});
  const Schedule schedule = one_f_one_b(2, kMicrobatches);
  const Strategy strategy = strategy_of(schedule, Layout::of(schedule));
  Trainer plan(Cluster::local(2), program, strategy, AdamW{}, {.clip = 0.5, .seed = 5});
  Trainer task(Cluster::local(2), program, strategy, AdamW{}, by_task());
  CHECK(step_of(task, 0).get().losses == step_of(plan, 0).get().losses);
  CHECK(same_bits(task.state_dict(), plan.state_dict()));
}

struct FourLayers : torch::nn::Module {
  torch::nn::ModuleList layers{register_module("layers", torch::nn::ModuleList())};
  FourLayers() {
    for (int s = 0; s < 4; ++s) {
      layers->push_back(torch::nn::Linear(4, 4));
    }
  }
  at::Tensor forward(at::Tensor x) {
    for (std::size_t s = 0; s < 4; ++s) {
      x = stage(std::to_string(s),
                [&] { return layers->ptr<torch::nn::LinearImpl>(s)->forward(x); });
    }
    return x;
  }
};

TEST_CASE("a plan whose columns wait for later ones is refused by task, and runs by plan",
          "[integration][dispatch][refusals]") {
  const at::Tensor x = torch::ones({10, 4});
  const Program program =
      compile(std::make_shared<FourLayers>(),
              {.inputs = {x}, .labels = {x}, .loss = torch::mse_loss, .microbatches = 5});
  // Rank 1 sends 1F2 behind later forwards, and rank 0 reads it in a column before them.
  const Schedule schedule = Schedule::parse(
      "@form list\n"
      "2F0 2I0 2W0 2F1 2F2 2F3 2F4 2I1 2W1 2I2 2W2 2I3 2I4 2W3 2W4\n"
      "1F0 1F1 1F2 1F3 1F4 1I0 1W0 1I1 1W1 1I2 1W2 1I3 1W3 1I4 1W4\n"
      "0F0 0F1 0F2 0F3 0F4 3F0 3I0 3W0 0I0 0W0 3F1 3I1 3F2 3F3 3F4 3I2 3I3 3I4 3W1 3W2 3W3 3W4 "
      "0I1 0W1 0I2 0W2 0I3 0W3 0I4 0W4\n");
  Trainer plan(Cluster::local(3), program, schedule, AdamW{});
  CHECK(plan.step({x}, {x}).get().step == 1);
  TrainerOptions options{.dispatch = Dispatch::PerTask};
  const auto refused = [&](Errc how) {
    return refusal([&] { Trainer task(Cluster::local(3), program, schedule, AdamW{}, options); },
                   how);
  };
  CHECK_THAT(refused(Errc::ScheduleInvalid), ContainsSubstring("run it by its plan"));
  options.device = "cuda";
  CHECK_THAT(refused(Errc::UsageArgument), ContainsSubstring("on the CPU only yet"));
}

TEST_CASE("by task whoever looks has returned before a batch is over", "[integration][dispatch]") {
  const Program program = make_program({.stages = 2});
  std::size_t seen = 0, throws_at = 1000;
  Trainer trainer(Cluster::local(2),
                  program,
                  make_schedule("1f1b", program),
                  AdamW{},
                  by_task([&](const DispatchedColumn& column) {
                    ++seen;
                    if (column.number == throws_at) {
                      throw std::runtime_error("enough");
                    }
                  }));
  const Data first = data(0);
  (void)trainer.accumulate(first.inputs, first.labels).get();
  const std::size_t columns = seen;
  trainer.drop_accumulated();
  throws_at = columns - 1;
  CHECK_THAT(error_of(trainer.accumulate(first.inputs, first.labels)).what(),
             ContainsSubstring("enough"));
}

TEST_CASE("nobody can look at columns of a plan", "[integration][dispatch][refusals]") {
  const Program program = make_program({.stages = 2});
  TrainerOptions options;
  options.on_column = [](const DispatchedColumn&) {};
  CHECK_THAT(refusal([&] {
               Trainer trainer(
                   Cluster::local(2), program, make_schedule("1f1b", program), AdamW{}, options);
             }),
             ContainsSubstring("set dispatch to Dispatch::PerTask"));
}

}  // namespace dispatch_cases
}  // namespace
}  // namespace stagecraft::tests
