/// Judges the order of transfers of plans by the rules of NCCL and CUDA.
#include "stagecraft/tests/sim/transfer_machine.h"

#include <random>
#include <string>

#include "stagecraft/compiler/lower/lower.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/tests/sim/chain_plans.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

// A rank has one stream of sends and one of receives, so more than two never run.
constexpr TransferRules kTwoKernels{.resident = 2};

Plan plan_of(const Schedule& schedule) {
  const Chain chain(Layout::of(schedule).model_stages());
  return lower_schedule(*chain.program, schedule, Layout::of(schedule), true);
}

TEST_CASE("every builder's plan runs to its end by NCCL, on the queues that a GPU has",
          "[nccl][builders]") {
  constexpr int kQueues = 8;  // as CUDA makes them unless told otherwise
  int plans = 0;
  for (const BuilderInfo& builder : builders()) {
    for (const int devices : {2, 4}) {
      const std::optional<Schedule> schedule = schedule_of(builder, devices);
      if (!schedule) {
        continue;
      }
      INFO(builder.name << " on " << devices << " devices");
      const Plan plan = plan_of(*schedule);
      if (plan.tables.has_overlaps) {
        continue;  // goes without NCCL
      }
      for (const RankList& list : plan.lists) {
        CHECK(list.streams.size() <= kQueues);
      }
      CHECK(run_transfers(plan, {.resident = 2, .queues = kQueues}).empty());
      ++plans;
    }
  }
  CHECK(plans > 20);
}

TEST_CASE("copies of stages run to their end by NCCL", "[nccl]") {
  const std::string chain = to_string(one_f_one_b(StageGraph::chain(2), Chain::kMicrobatches / 2));
  const Plan plan = plan_of(Schedule::parse("@place 0=0,2 1=1,3\n" + chain));
  CHECK(plan.ranks.size() == 4);
  CHECK(run_transfers(plan, kTwoKernels).empty());
}

TEST_CASE("with one kernel at a time two ranks that send to each other wait for ever", "[nccl]") {
  const Plan plan = plan_of(one_f_one_b(StageGraph::chain(2), Chain::kMicrobatches));
  CHECK_THAT(run_transfers(plan, {.resident = 1}),
             ContainsSubstring("rank 0: ") && ContainsSubstring("rank 1: "));
}

TEST_CASE("verify() refuses each order of transfers that NCCL would pair wrongly or not end",
          "[nccl]") {
  std::mt19937 random(3);
  const auto below = [&](std::size_t bound) { return random() % bound; };
  const Plan right = plan_of(one_f_one_b(StageGraph::chain(3), Chain::kMicrobatches));
  REQUIRE(run_transfers(right, kTwoKernels).empty());
  int refused = 0, accepted = 0;
  for (int n = 0; n < 2000; ++n) {
    Plan plan = right;
    for (RankList& list : plan.lists) {
      // Two neighbors on the stream of receives, or of sends, trade places in the list.
      std::vector<std::size_t> transfers;
      const Op op = below(2) == 0 ? Op::Send : Op::Recv;
      for (std::size_t i = 0; i < list.instructions.size(); ++i) {
        if (list.instructions[i].op == op && list.instructions[i].peer != kDriverPeer) {
          transfers.push_back(i);
        }
      }
      const std::size_t first = below(transfers.size() - 1);
      std::swap(list.instructions[transfers[first]], list.instructions[transfers[first + 1]]);
    }
    const bool is_right = verify(plan).empty();
    CHECK((!is_right || run_transfers(plan, kTwoKernels).empty()));
    (is_right ? accepted : refused) += 1;
  }
  CHECK(refused > 0);
}

}  // namespace
}  // namespace stagecraft::tests
