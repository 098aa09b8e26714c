/// Tests transfers by NCCL between ranks that act as if each were in a process of its own.
#include "stagecraft/tests/sim/nccl.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/tests/actors/executor/pipeline.h"
#include "stagecraft/tests/integration/models.h"
#include "stagecraft/tests/sim/chain_plans.h"
#include "stagecraft/tests/sim/sim_devices.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
using testing::Pipeline;
using testing::PipelineOptions;

const Optimizer kAdam = AdamW{.lr = 1e-2};

/// Checks that the ranks on devices have the bits of those on the CPU, and that nothing is left of
/// their work.
void check_equal_bits(Pipeline& there, Pipeline& here) {
  SimDevices::finish();
  const auto expected = here.state();
  for (const auto& [name, tensor] : there.state()) {
    CAPTURE(name);
    CHECK(torch::equal(tensor.cpu(), expected.at(name)));
  }
  CHECK(SimDevices::take_reports() == std::vector<std::string>());
  CHECK(sim::nccl_unfinished() == std::vector<std::string>());
}

/// Ranks on simulated devices, and the same on the CPU.
struct Both {
  explicit Both(const Schedule& schedule, PipelineOptions options, bool apart = true)
      : chain(Layout::of(schedule).model_stages()),
        there(*chain.program,
              schedule,
              [&] {
                options.optimizer = kAdam;
                options.apart = apart;
                return options;
              }()),
        here(*chain.program, schedule, {.optimizer = kAdam}) {}

  std::vector<double> step() {
    const Pipeline::Outcome outcome = there.step(chain.inputs, chain.labels);
    for (const auto& error : outcome.errors) {
      if (error) {
        FAIL_CHECK(error->what());
      }
    }
    const std::vector<double> losses = here.step(chain.inputs, chain.labels).losses;
    CHECK(outcome.losses == losses);
    return losses;
  }
  void check_equal_bits() { tests::check_equal_bits(there, here); }
  /// Returns how many transfers between ranks a step makes by NCCL.
  [[nodiscard]] std::int64_t transfers() {
    std::int64_t sends = 0;
    for (int rank = 0; rank < there.layout().ranks(); ++rank) {
      for (const Instruction& i : there.plan().list_of(Rank(rank)).instructions) {
        if (i.overlap >= 0) {
          return 0;  // of an order that is not fixed
        }
        sends += i.op == Op::Send && i.peer != kDriverPeer ? 1 : 0;
      }
    }
    return sends;
  }

  Chain chain;
  Pipeline there, here;
};

Schedule two_stages() {
  return one_f_one_b(StageGraph::chain(2), Chain::kMicrobatches);
}

/// Two copies of two stages, each on a device of its own.
Schedule copies() {
  return two_copies_of(one_f_one_b(StageGraph::chain(2), Chain::kMicrobatches / 2));
}

/// Four copies of one stage.
Schedule four_copies() {
  const Schedule chain = one_f_one_b(StageGraph::chain(1), Chain::kMicrobatches / 4);
  return Schedule::parse("@place 0=0,1,2,3\n" + to_string(chain));
}

/// Returns how many sums a rank's list starts.
std::int64_t sums_of(const Plan& plan) {
  std::int64_t sums = 0;
  for (const RankPlan& rank : plan.ranks) {
    sums += std::ranges::count(plan.list_of(rank.rank).instructions, Op::Start, &Instruction::op);
  }
  return sums;
}

TEST_CASE("copies of stages sum by NCCL in the order of the ranks: the bits of the CPU",
          "[sim][nccl][replicas]") {
  const SimDevices devices({.most_delay = std::chrono::microseconds(20)});
  Both both(GENERATE(copies(), four_copies()), {.device = "sim"});
  both.step();
  const std::int64_t before = sim::nccl_group_calls();
  both.step();
  constexpr int kExchangeAndGather = 2;
  CHECK(sim::nccl_group_calls() - before == kExchangeAndGather * sums_of(both.there.plan()));
  both.check_equal_bits();
}

TEST_CASE("copies get the statistics of the first copy without a look by the host",
          "[sim][nccl][replicas]") {
  const SimDevices devices({.most_delay = std::chrono::microseconds(20)});
  const Program program = make_program({.stages = 2});
  const Schedule schedule = copies();
  Pipeline there(program, schedule, {.optimizer = kAdam, .device = "sim", .apart = true});
  Pipeline here(program, schedule, {.optimizer = kAdam});
  std::int64_t waits = 0;
  for (int step = 0; step < 2; ++step) {
    const Data batch = data(step);
    const std::int64_t before = SimDevices::host_waits();
    CHECK(there.step(batch.inputs, batch.labels).losses ==
          here.step(batch.inputs, batch.labels).losses);
    waits = SimDevices::host_waits() - before;
  }
  // Two copies of the last stage for their losses; the first copies for their norms; each rank for
  // its streams at the end.
  std::int64_t expected = 4;
  for (const RankPlan& rank : there.plan().ranks) {
    expected += std::ssize(there.plan().list_of(rank.rank).streams);
  }
  CHECK(waits == expected);
  check_equal_bits(there, here);
}

TEST_CASE("sums in NCCL's own order are equal on all ranks, and those of the CPU up to rounding",
          "[sim][nccl][replicas]") {
  const SimDevices devices;
  Both both(four_copies(), {.device = "sim", .device_reduce = DeviceReduce::Nccl});
  both.there.step(both.chain.inputs, both.chain.labels);
  const std::int64_t before = sim::nccl_group_calls();
  both.there.step(both.chain.inputs, both.chain.labels);
  CHECK(sim::nccl_group_calls() - before == sums_of(both.there.plan()));
  both.here.step(both.chain.inputs, both.chain.labels);
  both.here.step(both.chain.inputs, both.chain.labels);
  SimDevices::finish();
  bool all_bits = true;
  const auto expected = both.here.state();
  for (const auto& [name, tensor] : both.there.state()) {
    CAPTURE(name);
    CHECK(torch::allclose(tensor.cpu(), expected.at(name), 1e-4, 1e-6));
    all_bits = all_bits && torch::equal(tensor.cpu(), expected.at(name));
  }
  CHECK_FALSE(all_bits);
  CHECK(SimDevices::take_reports() == std::vector<std::string>());
}

TEST_CASE("parts of tied parameters are gathered by NCCL", "[sim][nccl]") {
  const SimDevices devices({.most_delay = std::chrono::microseconds(20)});
  const auto [stages, name] =
      GENERATE(std::pair{2, "1f1b"}, std::pair{4, "1f1b"}, std::pair{4, "own"});
  CAPTURE(stages, name);
  const Program program = make_program({.stages = stages, .tied = true});
  const Schedule schedule = make_schedule(name, program);
  Pipeline there(program, schedule, {.optimizer = kAdam, .device = "sim", .apart = true});
  Pipeline here(program, schedule, {.optimizer = kAdam});
  const std::int64_t before = sim::nccl_group_calls();
  for (int step = 0; step < 2; ++step) {
    const Data batch = data(step);
    CHECK(there.step(batch.inputs, batch.labels).losses ==
          here.step(batch.inputs, batch.labels).losses);
  }
  CHECK(sim::nccl_group_calls() > before);
  check_equal_bits(there, here);
}

TEST_CASE("the host waits for no sum", "[sim][nccl][replicas]") {
  const SimDevices devices({.most_delay = std::chrono::microseconds(100)});
  Both both(four_copies(), {.device = "sim"});
  both.step();
  const std::int64_t before = SimDevices::host_waits();
  both.step();
  // The first rank for its norms; each rank for its loss and, at the end, each of its streams.
  std::int64_t expected = 1;
  for (const RankPlan& rank : both.there.plan().ranks) {
    expected += 1 + std::ssize(both.there.plan().list_of(rank.rank).streams);
  }
  CHECK(SimDevices::host_waits() - before == expected);
}

TEST_CASE("every builder's plan has the bits of the CPU where NCCL moves the tensors",
          "[sim][nccl][builders]") {
  const int count = GENERATE(2, 4);
  for (const BuilderInfo& builder : builders()) {
    const std::optional<Schedule> schedule = schedule_of(builder, count);
    if (!schedule) {
      continue;
    }
    INFO(builder.name << " on " << count << " devices");
    const SimDevices devices({.most_delay = std::chrono::microseconds(20)});
    Both both(*schedule, {.device = "sim"});
    const std::int64_t before = sim::nccl_transfers();
    both.step();
    both.step();
    CHECK(sim::nccl_transfers() - before == 2 * both.transfers());
    both.check_equal_bits();
  }
}

TEST_CASE("the host waits for no transfer", "[sim][nccl]") {
  const SimDevices devices({.most_delay = std::chrono::microseconds(100)});
  Both both(two_stages(), {.device = "sim"});
  both.step();
  const std::int64_t before = SimDevices::host_waits();
  both.step();
  // For each rank its norms and, at the end, each of its streams; for the last rank its losses.
  constexpr int kRanks = 2, kStreams = 3, kForLosses = 1;
  CHECK(SimDevices::host_waits() - before == kRanks * (1 + kStreams) + kForLosses);
}

TEST_CASE("ranks without a link send and sum through pinned memory of the host, and agree on it",
          "[sim][nccl]") {
  const SimDevices devices;
  const bool sums = GENERATE(false, true);
  CAPTURE(sums);
  PipelineOptions options{.device = "sim"};
  SECTION("they share a device") {
    options.device = "sim:1";
  }
  SECTION("the options say so") {
    options.device_transport = DeviceTransport::Host;
  }
  Both both(sums ? copies() : two_stages(), options);
  const std::int64_t before = sim::nccl_transfers();
  both.step();
  const std::int64_t copies = SimDevices::pageable_copies();
  both.step();
  CHECK(sim::nccl_transfers() == before);
  CHECK(SimDevices::pageable_copies() == copies);
  both.check_equal_bits();
}

TEST_CASE("wherever a rank fails, nothing waits for ever, and the next step is right",
          "[sim][nccl][failure]") {
  const SimDevices devices({.most_delay = std::chrono::microseconds(20)});
  const bool apart = GENERATE(true, false);
  const int victim = GENERATE(0, 1);
  const Schedule schedule = GENERATE(two_stages(), copies());
  std::optional<InstructionId> failing;
  const auto fail = [&](const Instruction& i) {
    if (i.id == failing) {
      throw Error(Errc::WorkerFailed, "injected failure");
    }
  };
  Both both(schedule, {.faults = {{Rank(victim), fail}}, .device = "sim"}, apart);
  both.step();
  for (const Instruction& i : both.there.plan().list_of(Rank(victim)).instructions) {
    if (i.op == Op::Update) {
      break;  // behind the vote the weights are lost
    }
    CAPTURE(apart, victim, to_string(i));
    failing = i.id;
    const auto outcome = both.there.step(both.chain.inputs, both.chain.labels);
    REQUIRE(outcome.errors[static_cast<std::size_t>(victim)]);
    CHECK(outcome.errors[static_cast<std::size_t>(victim)]->message() == "injected failure");
    for (int rank = 0; rank < both.there.layout().ranks(); ++rank) {
      const auto& other = outcome.errors[static_cast<std::size_t>(rank)];
      CHECK((rank == victim || !other || other->code() == Errc::WorkerAborted));
    }
    failing.reset();
    both.step();
  }
  both.check_equal_bits();
  CHECK(SimDevices::take_reports() == std::vector<std::string>());
}

TEST_CASE("a failure of NCCL is an error of the rank, with the task", "[sim][nccl][failure]") {
  const SimDevices devices;
  const std::string call = GENERATE("ncclCommInitRankConfig",
                                    "ncclCommGetAsyncError",
                                    "ncclSend",
                                    "ncclRecv",
                                    "ncclGroupEnd",
                                    "ncclAllGather",
                                    "ncclAllReduce");
  CAPTURE(call);
  const DeviceReduce reduce = call == "ncclAllReduce" ? DeviceReduce::Nccl : DeviceReduce::ByRank;
  Both both(copies(), {.device = "sim", .device_reduce = reduce});
  const bool connected = GENERATE(false, true);
  if (connected && call != "ncclCommInitRankConfig") {
    both.step();
  }
  {
    const sim::NcclFails fails(call);
    const auto outcome = both.there.step(both.chain.inputs, both.chain.labels);
    int failed = 0;
    for (const std::optional<Error>& error : outcome.errors) {
      if (error && error->code() == Errc::DeviceFailed) {
        ++failed;
        CHECK_THAT(error->message(),
                   ContainsSubstring("NCCL's ") &&
                       ContainsSubstring("remote process exited or there was a network error"));
        CHECK(error->context().rank);
      } else if (error) {
        CHECK(error->code() == Errc::WorkerAborted);
      }
    }
    CHECK(failed >= 1);
  }
  if (!connected) {
    both.step();
    both.check_equal_bits();
  }
}

}  // namespace
}  // namespace stagecraft::tests
