/// Judges the order of transfers of plans by the rules of NCCL and CUDA.
#include "stagecraft/tests/sim/transfer_machine.h"

#include <array>
#include <random>
#include <string>
#include <vector>

#include "stagecraft/compiler/lower/lower.h"
#include "stagecraft/scheduler/builders/interleaved.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/tests/sim/chain_plans.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

// A rank has one stream of sends and one of receives, so more than two never run.
constexpr TransferRules kTwoKernels{.resident = 2};
// And one of sums.
constexpr TransferRules kThreeKernels{.resident = 3};

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
  Plan plan = plan_of(two_copies_of(one_f_one_b(StageGraph::chain(2), Chain::kMicrobatches / 2)));
  CHECK(plan.ranks.size() == 4);
  CHECK(run_transfers(plan, kThreeKernels).empty());
  plan.lists.push_back(plan.list_of(Rank(2)));
  plan.ranks[2].list = static_cast<std::int32_t>(plan.lists.size()) - 1;
  CHECK(verify(plan).empty());
  plan.lists.back().streams.back() = "mine";  // ranks join by the names of streams
  CHECK_THAT(verify(plan).at(0), ContainsSubstring("its members sum on streams of other names"));
  // A rank that never starts its sum holds up the members of its group.
  std::erase_if(plan.lists.back().instructions,
                [](const Instruction& i) { return i.op == Op::Start; });
  CHECK_THAT(run_transfers(plan, kThreeKernels), ContainsSubstring("finish all-reduce of group"));
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
  const std::vector<Plan> right{
      plan_of(one_f_one_b(StageGraph::chain(3), Chain::kMicrobatches)),
      plan_of(interleaved(2, Chain::kMicrobatches, 2)),
      plan_of(two_copies_of(interleaved(2, Chain::kMicrobatches / 2, 2)))};
  for (const Plan& plan : right) {
    REQUIRE(run_transfers(plan, kThreeKernels).empty());
  }
  int refused = 0, accepted = 0;
  for (int n = 0; n < 20000; ++n) {
    Plan plan = right[below(right.size())];
    for (RankPlan& rank : plan.ranks) {
      plan.lists.push_back(plan.list_of(rank.rank));  // ranks that share a list
      rank.list = static_cast<std::int32_t>(plan.lists.size()) - 1;
      std::vector<Instruction>& list = plan.lists.back().instructions;
      // Two neighbors among the sends, the receives or the sums trade places in the list.
      std::vector<std::size_t> alike;
      const Op op = std::array{Op::Send, Op::Recv, Op::Start}[below(3)];
      for (std::size_t i = 0; i < list.size(); ++i) {
        if (list[i].op == op && (op == Op::Start || list[i].peer != kDriverPeer)) {
          alike.push_back(i);
        }
      }
      if (alike.size() > 1) {
        const std::size_t first = below(alike.size() - 1);
        std::swap(list[alike[first]], list[alike[first + 1]]);
      }
    }
    const bool is_right = verify(plan).empty();
    CHECK((!is_right || run_transfers(plan, kThreeKernels).empty()));
    (is_right ? accepted : refused) += 1;
  }
  CHECK(accepted > 0);
  CHECK(refused > 0);
}

}  // namespace
}  // namespace stagecraft::tests
