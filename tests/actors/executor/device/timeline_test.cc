/// Tests the record of a step: every instruction once, in an order that the data allows.
#include <torch/torch.h>

#include "stagecraft/compiler/compile.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/tests/actors/executor/pipeline.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/modules.h"

namespace stagecraft {
namespace {

constexpr int kTimedMicrobatches = 4;

struct Recorded {
  Plan plan;
  std::vector<StepReport> reports;
  std::vector<std::vector<InstructionTime>> timelines;
};

Recorded record(bool on, bool training = true) {
  torch::manual_seed(3);
  testing::Chain module(3);
  const Batch inputs{torch::randn({8, 8})}, labels{torch::randn({8, 8})};
  const Program program = compile(module,
                                  {.inputs = inputs,
                                   .labels = labels,
                                   .loss = testing::mean_square,
                                   .microbatches = kTimedMicrobatches});
  const Schedule schedule = one_f_one_b(program.stage_graph(), kTimedMicrobatches);
  testing::Pipeline pipeline(program, schedule, {.record_timeline = on});
  (void)pipeline.step(inputs, labels, training);
  auto outcome = pipeline.step(inputs, labels, training);
  return {lower_schedule(program, schedule, pipeline.layout(), true),
          std::move(outcome.reports),
          std::move(outcome.timelines)};
}

TEST_CASE("a recorded step has a time for every instruction of a rank, one after the other",
          "[executor][timeline]") {
  const Recorded step = record(true);
  for (std::size_t rank = 0; rank < step.reports.size(); ++rank) {
    CAPTURE(rank);
    const auto& instructions = step.plan.list_of(Rank(rank)).instructions;
    const std::vector<InstructionTime>& times = step.timelines[rank];
    REQUIRE(times.size() == instructions.size());
    for (std::size_t i = 0; i < times.size(); ++i) {
      CAPTURE(i, to_string(instructions[i]));
      CHECK(times[i].start > 0);
      CHECK(times[i].start <= times[i].end);
      if (i > 0) {
        CHECK(times[i - 1].end <= times[i].start);
      }
    }
  }
}

TEST_CASE(
    "a tensor is sent before it arrives, arrives before its receive ends, and has as many bytes at "
    "both ends",
    "[executor][timeline]") {
  const Recorded step = record(true);
  std::map<std::pair<EdgeId, Microbatch>, InstructionTime> sent;
  for (std::size_t rank = 0; rank < step.reports.size(); ++rank) {
    for (std::size_t i = 0; i < step.timelines[rank].size(); ++i) {
      const Instruction& instruction = step.plan.list_of(Rank(rank)).instructions[i];
      if (instruction.op == Op::Send) {
        sent[{instruction.edge, instruction.task.microbatch}] = step.timelines[rank][i];
      }
    }
  }
  int received = 0;
  for (std::size_t rank = 0; rank < step.reports.size(); ++rank) {
    for (std::size_t i = 0; i < step.timelines[rank].size(); ++i) {
      const Instruction& instruction = step.plan.list_of(Rank(rank)).instructions[i];
      const InstructionTime& time = step.timelines[rank][i];
      CAPTURE(rank, to_string(instruction));
      if (instruction.op != Op::Recv) {
        CHECK(time.arrived == 0);
        continue;
      }
      CHECK(time.arrived > 0);
      CHECK(time.arrived <= time.end);
      if (instruction.peer != kDriverPeer) {
        ++received;
        const InstructionTime& source = sent.at({instruction.edge, instruction.task.microbatch});
        CHECK(source.start <= time.arrived);
        CHECK(source.bytes == time.bytes);
        CHECK(time.bytes == 2 * 8 * 4);
      }
    }
  }
  CHECK(received == 2 * 2 * kTimedMicrobatches);  // two boundaries, there and back
}

TEST_CASE("what a rank holds rises and falls to nothing by the end of a step",
          "[executor][timeline]") {
  const Recorded step = record(true);
  for (std::size_t rank = 0; rank < step.reports.size(); ++rank) {
    CAPTURE(rank);
    const StepReport& report = step.reports[rank];
    std::int64_t held = 0, in_flight = 0;
    for (const InstructionTime& time : step.timelines[rank]) {
      held = std::max(held, time.held);
      in_flight = std::max(in_flight, time.in_flight);
    }
    CHECK(held > 0);
    CHECK(held <= report.times.peak_bytes);
    CHECK(in_flight == report.times.peak_in_flight);
    CHECK(step.timelines[rank].back().held == 0);
    CHECK(step.timelines[rank].back().in_flight == 0);
  }
}

TEST_CASE("nothing is recorded unless asked for, nor in an evaluation", "[executor][timeline]") {
  CHECK(record(false).timelines[0].empty());
  CHECK(record(true, false).timelines[0].empty());
}

TEST_CASE("a receive that completes late does not touch the next step", "[executor][timeline]") {
  const std::unique_ptr<Device> device = cpu_device();
  TimelineRecorder recorder(1, *device);
  recorder.begin_step();
  Promise<at::Tensor> late;
  recorder.expect(0, late.future());
  recorder.begin_step();  // the step before was abandoned
  Promise<at::Tensor> promise;
  recorder.expect(0, promise.future());
  late.set_value(torch::ones({1}));
  const Device::Event now = device->record(StreamId(1));
  recorder.record(0, now, now, 4, 0, 0);
  const std::vector<InstructionTime> times = recorder.take();
  CHECK(times[0].arrived == times[0].end);  // not noted yet: the end of the receive replaces it
}

}  // namespace
}  // namespace stagecraft
