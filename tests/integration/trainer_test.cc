#include "stagecraft/tests/integration/models.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
using namespace stagecraft::cells;

TEST_CASE("training lowers the loss", "[integration][trainer]") {
  const Program program = make_program();
  Cluster cluster = Cluster::local(2);
  Trainer trainer(cluster, program, make_schedule("1f1b", program), AdamW{.lr = 3e-2});
  const Data batch = data(0);
  const double before = trainer.step(batch.inputs, batch.labels).get().mean_loss;
  StepFuture last;
  for (int i = 0; i < 30; ++i) {
    last = trainer.step(batch.inputs, batch.labels);
  }
  CHECK(last.get().mean_loss < before / 2);
  CHECK(trainer.steps() == 31);
}

TEST_CASE("a schedule that breaks a rule is refused with the grid, before anything is dispatched",
          "[integration][trainer]") {
  const Program program = make_program();
  Cluster cluster = Cluster::local(2);
  const Schedule wrong{{F(0, 0), F(0, 1), F(0, 2), F(0, 3), B(0, 0), B(0, 1), B(0, 2)},
                       {idle, F(1, 0), B(1, 0), F(1, 1), B(1, 1), F(1, 2), B(1, 2)}};
  const CheckResult result = check(program, wrong);
  CHECK_FALSE(result.ok());
  CHECK(result.violations.size() >= 2);
  const std::string message =
      refusal([&] { Trainer trainer(cluster, program, wrong, AdamW{}); }, Errc::ScheduleInvalid);
  CHECK_THAT(message, ContainsSubstring("0F3") && ContainsSubstring("[") && ContainsSubstring("V"));
  CHECK(check(program, make_schedule("gpipe", program)).ok());
  CHECK_NOTHROW(check(program, make_schedule("gpipe", program)).or_throw());
}

TEST_CASE("a cluster with too few ranks is refused", "[integration][trainer]") {
  const Program program = make_program({.stages = 4});
  Cluster cluster = Cluster::local(3);
  const std::string message =
      refusal([&] { Trainer trainer(cluster, program, make_schedule("gpipe", program), AdamW{}); },
              Errc::ClusterMember);
  CHECK_THAT(message,
             ContainsSubstring("runs on 4 ranks") && ContainsSubstring("the cluster has 3"));
}

TEST_CASE("a row without a task needs no rank, and changes no bit", "[integration][trainer]") {
  const Program program = make_program();
  const Schedule schedule = make_schedule("1f1b", program).to_list();
  const Schedule gaps(Schedule::Form::List, {{}, schedule.rows()[0], {}, schedule.rows()[1]});
  Cluster cluster = Cluster::local(2);
  Trainer plain(cluster, program, schedule, AdamW{.lr = 1e-2});
  Trainer with_gaps(cluster, program, gaps, AdamW{.lr = 1e-2});
  CHECK(with_gaps.plan().ranks.size() == 2);
  for (int i = 0; i < 2; ++i) {
    const Data batch = data(i);
    const StepResult expected = plain.step(batch.inputs, batch.labels).get();
    const StepResult found = with_gaps.step(batch.inputs, batch.labels).get();
    CHECK(found.losses == expected.losses);
    CHECK(found.ranks.size() == 2);
    CHECK(with_gaps.evaluate(batch.inputs, batch.labels) ==
          plain.evaluate(batch.inputs, batch.labels));
  }
  CHECK(same_bits(with_gaps.state_dict(), plain.state_dict()));
}

TEST_CASE("a header that names fewer stages than the tasks do is refused",
          "[integration][trainer]") {
  const Program program = make_program();
  const Schedule schedule = make_schedule("gpipe", program);
  const Schedule wrong(schedule.form(), schedule.rows(), {.stages = 1});
  const CheckResult result = check(program, wrong);
  REQUIRE(result.violations.size() == 1);
  CHECK_THAT(result.violations.front().message,
             ContainsSubstring("declares 1 stage, the program has 2"));
}

TEST_CASE("options that make no sense are refused", "[integration][trainer]") {
  const TrainerOptions options =
      GENERATE(TrainerOptions{.outstanding = 0},
               TrainerOptions{.threads_per_worker = 0},
               TrainerOptions{.clip = 0.0},
               TrainerOptions{.clip_value = 0.0},
               TrainerOptions{.average = 1.0},
               TrainerOptions{.clip = 1.0, .clip_value = 1.0},
               TrainerOptions{.step_deadline = std::chrono::milliseconds(0)},
               TrainerOptions{.state_deadline = std::chrono::milliseconds::max()},
               TrainerOptions{.learning_rate = {.warmup = -1}},
               TrainerOptions{.learning_rate = {.kind = LearningRate::Kind::Cosine}});
  const Program program = make_program();
  Cluster cluster = Cluster::local(2);
  refusal(
      [&] { Trainer trainer(cluster, program, make_schedule("gpipe", program), AdamW{}, options); },
      Errc::UsageArgument);
}

TEST_CASE("a batch unlike the one compiled for is refused by step itself",
          "[integration][trainer]") {
  const Program program = make_program();
  Cluster cluster = Cluster::local(2);
  Trainer trainer(cluster, program, make_schedule("gpipe", program), AdamW{});
  const Data batch = data(0);
  const at::Tensor tokens = batch.inputs[0].tensor;
  refusal([&] { (void)trainer.step({tokens.narrow(0, 0, 8)}, batch.labels); }, Errc::CompileShape);
  refusal([&] { (void)trainer.step({tokens.to(at::kInt)}, batch.labels); }, Errc::CompileShape);
  refusal([&] { (void)trainer.step({}, batch.labels); }, Errc::UsageArgument);
  CHECK(trainer.step(batch.inputs, batch.labels).get().step == 1);
}

TEST_CASE("evaluating changes nothing and sees the weights of the steps before it",
          "[integration][trainer]") {
  const Program program = make_program({.statistics = false});
  Cluster cluster = Cluster::local(2);
  Trainer trainer(cluster, program, make_schedule("1f1b", program), AdamW{.lr = 1e-2});
  Trainer undisturbed(cluster, program, make_schedule("1f1b", program), AdamW{.lr = 1e-2});
  const Data batch = data(0);
  const double first = trainer.evaluate(batch.inputs, batch.labels);
  CHECK(first == trainer.evaluate(batch.inputs, batch.labels));
  CHECK(first == trainer.step(batch.inputs, batch.labels).get().mean_loss);
  const StepFuture step = trainer.step(batch.inputs, batch.labels);
  const double later = trainer.evaluate(batch.inputs, batch.labels);
  CHECK(step.ready());
  CHECK(later < first);
  CHECK(trainer.steps() == 2);
  (void)undisturbed.step(batch.inputs, batch.labels);
  (void)undisturbed.step(batch.inputs, batch.labels);
  CHECK(same_bits(trainer.state_dict(), undisturbed.state_dict()));
}

TEST_CASE("a trainer may outlive its cluster, and be moved", "[integration][trainer]") {
  const Program program = make_program();
  std::optional<Cluster> cluster = Cluster::local(2);
  Trainer first(*cluster, program, make_schedule("gpipe", program), AdamW{});
  Trainer trainer = std::move(first);
  cluster.reset();
  const Data batch = data(0);
  CHECK(trainer.step(batch.inputs, batch.labels).get().step == 1);
  CHECK(trainer.plan().ranks.size() == 2);
}

TEST_CASE("a trainer that was moved from says so to every call", "[integration][trainer]") {
  const Program program = make_program();
  Cluster cluster = Cluster::local(2);
  Trainer first(cluster, program, make_schedule("gpipe", program), AdamW{});
  Trainer second = std::move(first);
  const Data batch = data(0);
  const auto calls =
      std::vector<std::function<void()>>{[&] { (void)first.step(batch.inputs, batch.labels); },
                                         [&] { (void)first.evaluate(batch.inputs, batch.labels); },
                                         [&] { (void)first.steps(); },
                                         [&] { (void)first.state_dict(); },
                                         [&] { (void)first.module_state(); },
                                         [&] { first.save("none"); },
                                         [&] { first.load("none"); },
                                         [&] { (void)first.plan(); },
                                         [&] { (void)first.status(); }};
  for (const auto& call : calls) {
    CHECK_THAT(refusal(call, Errc::UsageArgument), ContainsSubstring("moved from"));
  }
  first = std::move(second);
  CHECK(first.step(batch.inputs, batch.labels).get().step == 1);
  CHECK_THAT(refusal([&] { (void)second.steps(); }, Errc::UsageArgument),
             ContainsSubstring("moved from"));
}

TEST_CASE("a trainer that records says of every step when each instruction of its plan ran",
          "[integration][trainer]") {
  const bool record = GENERATE(true, false);
  const Program program = make_program();
  Cluster cluster = Cluster::local(2);
  Trainer trainer(
      cluster, program, make_schedule("1f1b", program), AdamW{}, {.record_timeline = record});
  const Data batch = data(0);
  std::int64_t before = 0;
  for (int step = 0; step < 2; ++step) {
    const StepResult result = trainer.step(batch.inputs, batch.labels).get();
    REQUIRE(result.timelines.size() == 2);
    for (std::size_t rank = 0; rank < 2; ++rank) {
      const std::vector<InstructionTime>& times = result.timelines[rank];
      REQUIRE(times.size() ==
              (record ? trainer.plan().list_of(Rank(rank)).instructions.size() : 0));
      if (record) {
        CHECK(times.front().start > before);
      }
    }
    before = record ? result.timelines[1].back().end : 0;
  }
  CHECK(trainer.evaluate(batch.inputs, batch.labels) > 0);
}

TEST_CASE("ranks without a step under way are in no instruction", "[integration][trainer]") {
  const Program program = make_program();
  Cluster cluster = Cluster::local(2);
  Trainer trainer(cluster, program, make_schedule("gpipe", program), AdamW{});
  const std::vector<RankStatus> status = trainer.status();
  REQUIRE(status.size() == 2);
  CHECK(status[1].rank == Rank(1));
  CHECK(status[1].instruction.empty());
  CHECK(status[1].seconds == 0.0);
}

}  // namespace
}  // namespace stagecraft::tests
