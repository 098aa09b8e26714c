/// Tests the loop of a step on a device that notes what it is asked for.
#include "stagecraft/actors/executor/run/step_loop.h"

#include <algorithm>

#include <torch/torch.h>

#include "stagecraft/tests/actors/executor/run/one_rank.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using testing::OneRank;

const char* const kTwoStages = "@form list\n0F0 1F0 1B0 0B0 0F1 1F1 1B1 0B1\n";

/// Numbers its events, and notes the waits and the streams that are used.
class NotingDevice final : public Device {
 public:
  struct Use {
    StreamId stream;
    std::vector<std::int64_t> waits;  ///< events waited for before
  };

  explicit NotingDevice(std::vector<Use>& uses) : uses_(uses) {}
  [[nodiscard]] c10::Device place() const override { return kProgramDevice; }
  void use(StreamId stream) override { uses_.push_back({stream, std::exchange(waits_, {})}); }
  Event record(StreamId) noexcept override { return {++events_}; }
  void wait(StreamId, Event event) override { waits_.push_back(event.value); }
  void keep_for(StreamId, const at::Tensor&) override {}
  [[nodiscard]] at::Tensor hand_over(StreamId, const at::Tensor& tensor) override { return tensor; }
  [[nodiscard]] at::Tensor take_over(StreamId, at::Tensor tensor) override { return tensor; }
  void synchronize() override {}
  [[nodiscard]] std::int64_t time_of(Event event) const override { return event.value; }
  [[nodiscard]] std::unique_ptr<StepScope> begin_step() override { return nullptr; }
  [[nodiscard]] RankMemory memory_use() const override { return {}; }

 private:
  std::vector<Use>& uses_;
  std::vector<std::int64_t> waits_;
  std::int64_t events_ = 0;
};

/// Options under which `issued` gets every instruction that begins.
TrainerOptions noting(std::vector<Instruction>& issued) {
  return {.before_instruction = [&issued](Rank, const Instruction& i) { issued.push_back(i); }};
}

std::vector<Op> ops_of(const std::vector<Instruction>& all) {
  std::vector<Op> ops;
  std::ranges::transform(all, std::back_inserter(ops), &Instruction::op);
  return ops;
}

TEST_CASE("the loop issues a list in its order, each on its stream, after what it waits for",
          "[executor][loop]") {
  const testing::SmallChain chain = testing::small_chain(2);
  std::vector<Instruction> issued;
  std::vector<NotingDevice::Use> uses;
  OneRank rank(chain.program,
               Schedule::parse(kTwoStages),
               noting(issued),
               std::make_unique<NotingDevice>(uses));
  CHECK(rank.run({}, chain.inputs, chain.labels).size() == testing::kOneRankMicrobatches);
  const LoadedPlan& plan = *rank.programs.at(kTraining).plan;
  REQUIRE(uses.size() == plan.bound.list.size());
  REQUIRE(issued.size() == uses.size());
  std::size_t waits = 0;
  for (std::size_t i = 0; i < uses.size(); ++i) {
    CAPTURE(i, to_string(issued[i]));
    const BoundInstruction& bound = plan.bound.list[i];
    CHECK(issued[i].id == bound.instruction->id);
    CHECK(uses[i].stream == bound.instruction->stream);
    std::vector<std::int64_t> events;
    for (const std::size_t earlier : bound.waits) {
      CHECK(earlier < i);
      events.push_back(plan.events[earlier].value);
    }
    CHECK(uses[i].waits == events);
    waits += events.size();
  }
  CHECK(waits > 0);
}

TEST_CASE("AC-1: a batch that others of its update follow ends before sums, vote and update",
          "[executor][loop]") {
  const testing::SmallChain chain = testing::small_chain(2);
  std::vector<Instruction> issued;
  OneRank rank(chain.program, Schedule::parse(kTwoStages), noting(issued));
  const std::unique_ptr<Device> clock = cpu_device();
  TimelineRecorder recorder(rank.setup.train.list->instructions.size(), *clock);
  recorder.begin_step();
  const torch::Tensor before = rank.programs.trained()[0].buckets.parameters()[0].clone();
  (void)rank.run({.updates = false}, chain.inputs, chain.labels, &recorder);
  const std::vector<InstructionTime> times = recorder.take();
  std::vector<Op> ran, skipped;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const Op op = rank.setup.train.list->instructions[i].op;
    const bool is_of_update = is_collective(op) || op == Op::Vote || op == Op::Update;
    (is_of_update ? skipped : ran).push_back(op);
    CHECK((!is_of_update || times[i].start == times[i].end));
  }
  CHECK((ops_of(issued) == ran));
  CHECK(std::ranges::count(skipped, Op::Update) == 2);
  CHECK_FALSE(rank.commit.is_past_the_vote());
  CHECK(torch::equal(rank.programs.trained()[0].buckets.parameters()[0], before));

  issued.clear();
  (void)rank.run({.submission = Submission(1), .learning_rate = 0.1, .accumulated = 1},
                 chain.inputs,
                 chain.labels);
  CHECK(issued.size() == rank.setup.train.list->instructions.size());
  CHECK_FALSE(torch::equal(rank.programs.trained()[0].buckets.parameters()[0], before));
}

TEST_CASE("X-4: a rank whose step is given up begins no further instruction, with its place",
          "[executor][loop]") {
  const testing::SmallChain chain = testing::small_chain(2);
  std::vector<Instruction> issued;
  OneRank* running = nullptr;
  OneRank rank(chain.program,
               Schedule::parse(kTwoStages),
               {.before_instruction = [&](Rank, const Instruction& i) {
                 issued.push_back(i);
                 if (i.op == Op::Run && i.task.kind == CellKind::Backward) {
                   running->transport->advance(
                       {}, Epoch(1), Error(Errc::WorkerAborted, "another rank failed"));
                 }
               }});
  running = &rank;
  const StepOrder order{.step = Step(6)};
  rank.feed(chain.inputs, chain.labels, order);
  RunningStep step = rank.begin(order);
  try {
    StepLoop(rank.parts, step, nullptr).run();
    FAIL("it ran on");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::WorkerAborted);
    CHECK(error.context().rank == Rank(0));
    CHECK(error.context().stage == StageId(1));
    CHECK(error.context().microbatch == Microbatch(0));
    CHECK(error.context().step == Step(6));
    CHECK(error.context().task == "1B0");
  }
  CHECK(to_string(issued.back().task) == "1B0");
}

TEST_CASE("X-4: after the vote a step that is given up ends its update", "[executor][loop]") {
  const testing::SmallChain chain = testing::small_chain(2);
  OneRank* running = nullptr;
  int updates = 0;
  OneRank rank(chain.program,
               Schedule::parse(kTwoStages),
               {.before_instruction = [&](Rank, const Instruction& i) {
                 if (i.op == Op::Update && updates++ == 0) {
                   running->transport->advance({}, Epoch(1), Error(Errc::WorkerAborted, "late"));
                 }
               }});
  running = &rank;
  CHECK_NOTHROW(rank.run({}, chain.inputs, chain.labels));
  CHECK(updates == 2);
  CHECK(rank.commit.is_past_the_vote());
}

}  // namespace
}  // namespace stagecraft
