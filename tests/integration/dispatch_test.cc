/// Tests steps whose tasks the driver releases, column by column: they have the bits of the plan,
/// whoever looks sees each column once, and failures end them.
#include <algorithm>
#include <csignal>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "stagecraft/actors/executor/setup/dispatch_columns.h"
#include "stagecraft/actors/trainer/execution.h"
#include "stagecraft/compiler/plan/own_slots.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/builders/schedule_for.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/scheduler/simulate/to_array.h"
#include "stagecraft/scheduler/strategy/strategy_of.h"
#include "stagecraft/tests/integration/models.h"
#include "stagecraft/tests/integration/remote_classes.h"
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

TEST_CASE("whoever looks may read the values of a column, keep them, and pass them to actors",
          "[integration][dispatch]") {
  const bool has_processes = GENERATE(false, true);
  CAPTURE(has_processes);
  const Program program = make_program({.stages = 2});
  const Cluster cluster =
      has_processes ? Cluster::spawn(3, {.program = STAGECRAFT_REMOTE_WORKER}) : Cluster::local(3);
  const auto book = cluster.spawn<Notebook>(on(Rank(2)), "values");
  std::vector<Future<double>> sums;
  std::vector<Future<at::Tensor>> kept;
  const auto look = [&](const DispatchedColumn& column) {
    for (const DispatchedTask& task : column.tasks) {
      REQUIRE(task.tensors.size() == task.values.size());
      for (std::size_t v = 0; v < task.values.size(); ++v) {
        kept.push_back(task.tensors[v]);
        sums.push_back(book.call<&Notebook::sum>(task.tensors[v]));
        if (column.number == 0) {
          const at::Tensor read = task.tensors[v].get();
          CHECK(read.sizes() == at::IntArrayRef(task.values[v].sizes));
          CHECK(read.norm().item<double>() == Catch::Approx(task.values[v].norm));
        }
      }
    }
  };
  TrainerOptions options = by_task(look);
  options.column_tensors = true;
  Trainer trainer(cluster, program, make_schedule("1f1b", program), AdamW{}, options);
  (void)step_of(trainer, 0).get();
  REQUIRE(sums.size() >= 2 * kMicrobatches);  // an activation and a gradient of each
  for (std::size_t i = 0; i < sums.size(); ++i) {
    CHECK(sums[i].get() == Catch::Approx(kept[i].get().sum().item<double>()).margin(1e-6));
  }
}

/// Names the columns of an array, one after the other.
auto following(const Schedule& array) {
  return [array](const Schedule& so_far, const DispatchedColumn&) {
    std::vector<Task> next;
    for (std::size_t c = so_far.columns(); next.empty() && c < array.columns(); ++c) {
      for (const Schedule::Row& row : array.rows()) {
        if (c < row.size()) {
          next.insert(next.end(), row[c].tasks().begin(), row[c].tasks().end());
        }
      }
    }
    return next;
  };
}

TrainerOptions decided(decltype(TrainerOptions::decide) decide) {
  TrainerOptions options{.clip = 0.5, .seed = 5, .dispatch = Dispatch::Decided};
  options.decide = std::move(decide);
  return options;
}

/// Trains by the plan of `schedule`, and in its order by decision where `given` has the tasks.
void check_decided(const Cluster& cluster,
                   const Program& program,
                   const Schedule& given,
                   const Schedule& schedule) {
  Trainer plan(cluster, program, schedule, AdamW{.lr = 1e-2}, {.clip = 0.5, .seed = 5});
  Trainer decides(cluster,
                  program,
                  given,
                  AdamW{.lr = 1e-2},
                  decided(following(to_array(schedule.to_list(), schedule.stage_graph()))));
  for (int step = 0; step < 2; ++step) {
    const StepResult expected = step_of(plan, step).get(), found = step_of(decides, step).get();
    CHECK(found.losses == expected.losses);
    CHECK(found.gradient_norm == expected.gradient_norm);
  }
  CHECK(same_bits(decides.state_dict(), plan.state_dict()));
}

TEST_CASE("an order that is decided while it runs has the bits of its plan",
          "[integration][dispatch][decided]") {
  const Program of_two = make_program({.stages = 2, .dropout = 0.1, .statistics = false});
  const Program of_four = make_program({.stages = 4, .dropout = 0.1, .statistics = false});
  for (const BuilderInfo& builder : builders()) {
    CAPTURE(builder.name);
    const bool both_ways = builder.name == "dualpipe";  // it takes few stages for 4 microbatches
    const Program& program = both_ways ? of_two : of_four;
    const Schedule schedule =
        schedule_for(builder.name, program.stage_graph(), program.microbatches());
    CHECK(verify(with_own_slots(*make_execution(program, schedule).plan)).empty());
    check_decided(Cluster::local(8), program, schedule, schedule);
  }
  check_decided(
      Cluster::local(4), of_four, make_schedule("gpipe", of_four), make_schedule("1f1b", of_four));
}

TEST_CASE("copies and processes run an order that is decided",
          "[integration][dispatch][decided][processes]") {
  const Program program = make_program({.stages = 2, .tied = true});
  const Schedule copies = in_copies(one_f_one_b(2, kMicrobatches / 2), 2);
  check_decided(Cluster::local(4), program, copies, copies);
  check_decided(
      Cluster::spawn(2), program, make_schedule("gpipe", program), make_schedule("1f1b", program));
}

TEST_CASE("a decision may look at what has run", "[integration][dispatch][decided]") {
  const Program program = make_program({.stages = 2, .statistics = false});
  const Schedule given = make_schedule("gpipe", program);
  // Runs what is possible: forwards by falling norm of the first stage's results.
  std::map<int, double> norms;
  Schedule order{{}};
  const auto decide = [&](const Schedule& so_far, const DispatchedColumn& last) {
    for (const DispatchedTask& task : last.tasks) {
      if (task.task.stage == StageId(0) && task.task.kind == CellKind::Forward) {
        norms[task.scheduled.microbatch.value] = task.values.at(0).norm;
      }
    }
    order = so_far;
    std::set<Task> run;
    for (const Schedule::Row& row : so_far.rows()) {
      for (const Cell& cell : row) {
        run.insert(cell.tasks().begin(), cell.tasks().end());
      }
    }
    std::vector<int> by_norm{0, 1, 2, 3};
    std::ranges::sort(by_norm, std::greater<>(), [&](int m) { return norms[m]; });
    std::vector<Task> next;
    for (int stage = 0; stage < 2; ++stage) {
      const auto first = [&](CellKind kind, const Task& before) -> std::optional<Task> {
        for (const int m : by_norm) {
          const Task one{kind, StageId(stage), Microbatch(m)};
          const Task needed{before.kind, before.stage, Microbatch(m)};
          if (!run.contains(one) &&
              (needed == Task{} || before.kind == CellKind::Idle || run.contains(needed))) {
            return one;
          }
        }
        return std::nullopt;
      };
      auto task =
          first(CellKind::Forward, stage == 0 ? Task{} : Task{CellKind::Forward, StageId(0), {}});
      if (!task) {
        task = first(CellKind::Backward,
                     stage == 1 ? Task{CellKind::Forward, StageId(1), {}}
                                : Task{CellKind::Backward, StageId(1), {}});
      }
      if (task) {
        next.push_back(*task);
      }
    }
    return next;
  };
  Trainer decides(Cluster::local(2), program, given, AdamW{.lr = 1e-2}, decided(decide));
  Trainer plan(Cluster::local(2), program, given, AdamW{.lr = 1e-2}, {.clip = 0.5, .seed = 5});
  const StepResult found = step_of(decides, 0).get(), expected = step_of(plan, 0).get();
  CHECK(found.losses == expected.losses);  // gradients are added in another order
  CHECK(found.gradient_norm == Catch::Approx(expected.gradient_norm));
  REQUIRE(norms.size() == kMicrobatches);
  std::vector<double> seen;  // of the backwards of stage 1, when all norms were known
  for (const Cell& cell : order.rows()[1]) {
    for (const Task& task : cell.tasks()) {
      if (task.kind == CellKind::Backward) {
        seen.push_back(norms.at(task.microbatch.value));
      }
    }
  }
  CHECK(seen.size() >= 3);
  CHECK(std::ranges::is_sorted(seen, std::greater<>()));
}

TEST_CASE("steps whose order is decided are recorded, accumulate, and recover like others",
          "[integration][dispatch][decided]") {
  const Program program = make_program({.stages = 2});
  const Schedule given = make_schedule("1f1b", program);
  TrainerOptions options = decided(following(to_array(given.to_list(), given.stage_graph())));
  options.record_timeline = true;
  options.mirror = true;
  Trainer trainer(Cluster::local(2), program, given, AdamW{.lr = 1e-2}, options);
  options.dispatch = Dispatch::Plan;
  options.decide = nullptr;
  Trainer plan(Cluster::local(2), program, given, AdamW{.lr = 1e-2}, options);
  const Data first = data(0);
  (void)trainer.accumulate(first.inputs, first.labels).get();
  (void)plan.accumulate(first.inputs, first.labels).get();
  const StepResult found = step_of(trainer, 1).get(), expected = step_of(plan, 1).get();
  CHECK(found.losses == expected.losses);
  CHECK(same_bits(trainer.state_dict(), plan.state_dict()));
  for (std::size_t rank = 0; rank < 2; ++rank) {
    REQUIRE(found.timelines[rank].size() == expected.timelines[rank].size());
    for (std::size_t i = 0; i < found.timelines[rank].size(); ++i) {
      CHECK(found.timelines[rank][i].end >= found.timelines[rank][i].start);
      CHECK(found.timelines[rank][i].start > 0);
    }
  }
  CHECK(trainer.recover() == 1);
  (void)step_of(trainer, 2).get();
  (void)step_of(plan, 2).get();
  CHECK(same_bits(trainer.state_dict(), plan.state_dict()));
}

TEST_CASE("a decision that cannot be run ends its step, and nothing changes",
          "[integration][dispatch][decided][failure]") {
  const Program program = make_program({.stages = 2});
  const Schedule given = make_schedule("1f1b", program);
  const auto follow = following(to_array(given.to_list(), given.stage_graph()));
  std::optional<std::vector<Task>> instead;
  bool throws = false;
  Trainer trainer(Cluster::local(2),
                  program,
                  given,
                  AdamW{},
                  decided([&](const Schedule& so_far, const DispatchedColumn& last) {
                    if (throws && so_far.columns() == 2) {
                      throw std::runtime_error("I cannot decide");
                    }
                    return instead && so_far.columns() == 2 ? *instead : follow(so_far, last);
                  }));
  const StateDict before = trainer.state_dict();
  instead = {{CellKind::Backward, StageId(0), Microbatch(3)}};
  CHECK_THAT(error_of(step_of(trainer, 0)).what(),
             ContainsSubstring("decide named a column that cannot run: column 3 cannot have 0B3: "
                               "it waits for 0F3"));
  instead = std::vector<Task>{};
  CHECK_THAT(error_of(step_of(trainer, 0)).what(), ContainsSubstring("column 3 has no task"));
  instead.reset();
  throws = true;
  CHECK_THAT(error_of(step_of(trainer, 0)).what(),
             ContainsSubstring("decide threw in column 3: I cannot decide"));
  throws = false;
  CHECK(same_bits(trainer.state_dict(), before));
  CHECK(step_of(trainer, 0).get().step == 1);
}

TEST_CASE("a lost rank ends a step whose order is decided",
          "[integration][dispatch][decided][processes]") {
  const Program program = make_program({.stages = 2});
  const Cluster cluster = Cluster::spawn(2);
  const Schedule given = make_schedule("1f1b", program);
  const auto follow = following(to_array(given.to_list(), given.stage_graph()));
  Trainer trainer(cluster,
                  program,
                  given,
                  AdamW{},
                  decided([&](const Schedule& so_far, const DispatchedColumn& last) {
                    if (so_far.columns() == 3) {
                      ::kill(static_cast<pid_t>(cluster.workers()[1].process), SIGKILL);
                    }
                    return follow(so_far, last);
                  }));
  CHECK(error_of(step_of(trainer, 0)).code() == Errc::WorkerLost);
}

TEST_CASE("an order is decided by a function, and not in chunks",
          "[integration][dispatch][decided][refusals]") {
  const Program program = make_program({.stages = 2});
  const auto refused = [&](const TrainerOptions& options) {
    return refusal([&] {
      Trainer trainer(Cluster::local(2), program, make_schedule("1f1b", program), AdamW{}, options);
    });
  };
  CHECK_THAT(refused({.dispatch = Dispatch::Decided}), ContainsSubstring("needs a function"));
  TrainerOptions options = decided([](const auto&, const auto&) { return std::vector<Task>{}; });
  options.dispatch = Dispatch::PerTask;
  CHECK_THAT(refused(options), ContainsSubstring("needs a function"));
  options.dispatch = Dispatch::Decided;
  const Execution in_chunks = make_execution(
      program, in_copies(one_f_one_b(2, kMicrobatches / 2), 2), {.bucket_bytes = 64});
  CHECK_THAT(refusal([&] { Trainer trainer(Cluster::local(4), in_chunks, AdamW{}, options); },
                     Errc::ScheduleInvalid),
             ContainsSubstring("it runs in chunks"));
}

}  // namespace dispatch_cases
}  // namespace
}  // namespace stagecraft::tests
