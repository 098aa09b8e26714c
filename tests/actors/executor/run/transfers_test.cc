/// Tests transfers: receives are posted ahead, a wait shows its rank and ends, and a rank may read
/// what the driver would send.
#include "stagecraft/actors/executor/run/transfers.h"

#include <future>

#include <torch/torch.h>

#include "stagecraft/base/manual_clock.h"
#include "stagecraft/tests/actors/executor/run/one_rank.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/eventually.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using namespace std::chrono_literals;
using Catch::Matchers::ContainsSubstring;
using testing::OneRank;

constexpr auto kPatience = 30s;
const char* const kForwardsFirst = "@form list\n0F0 0F1 0B0 0B1\n";

struct OneStageRank {
  testing::SmallChain chain = testing::small_chain(1);
  OneRank rank{chain.program, Schedule::parse(kForwardsFirst)};
  const BoundPlan& bound = rank.programs.at(kTraining).plan->bound;

  const std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>();

  [[nodiscard]] Transfers make() const {
    return {bound, rank.transport, std::make_shared<WaitBoard>(clock), kPatience};
  }
};

TEST_CASE("TX-1: a tensor that came before its instruction is there at once",
          "[executor][transfers]") {
  OneStageRank f;
  const StepOrder order{.submission = Submission(3)};
  Transfers transfers = f.make();
  transfers.begin({.submission = order.submission});
  const std::size_t first = f.bound.receives.front();
  CHECK_FALSE(transfers.have_arrived(first, first + 1));
  f.rank.feed(f.chain.inputs, f.chain.labels, order);
  for (const std::size_t position : f.bound.receives) {
    CHECK(transfers.have_arrived(position, position + 1));
    const Instruction& receive = *f.bound.list[position].instruction;
    CHECK(transfers.take(position).size(0) == 2);
    CHECK(receive.peer == kDriverPeer);
  }
}

TEST_CASE("TX-2: a tensor that does not come ends the wait, and names its sender and task",
          "[executor][transfers]") {
  OneStageRank f;
  Transfers transfers = f.make();
  transfers.begin({});
  auto waiting = std::async(std::launch::async, [&] {
    return refusal([&] { (void)transfers.take(f.bound.receives.front()); }, Errc::ClusterTimeout);
  });
  CHECK(eventually([&] { return f.clock->waits() == 1; }));
  f.clock->advance(kPatience - 1ms);
  CHECK(waiting.wait_for(0s) == std::future_status::timeout);
  f.clock->advance(1ms);
  CHECK_THAT(waiting.get(),
             ContainsSubstring("nothing arrived from the driver within 30 s for 0F0"));
}

TEST_CASE("what a rank reads itself is not received", "[executor][transfers]") {
  OneStageRank f;
  Transfers transfers = f.make();
  std::vector<std::pair<EdgeId, Microbatch>> read;
  transfers.begin({}, [&](EdgeId edge, Microbatch m) {
    read.emplace_back(edge, m);
    return torch::full({1}, m.value);
  });
  const std::size_t last = f.bound.receives.back();
  CHECK_FALSE(transfers.arrival(last).valid());
  CHECK(transfers.have_arrived(last, last + 1));
  CHECK(transfers.take(last).item<float>() == 1.0F);
  const Instruction& receive = *f.bound.list[last].instruction;
  CHECK((read == std::vector<std::pair<EdgeId, Microbatch>>{{receive.edge, Microbatch(1)}}));
}

}  // namespace
}  // namespace stagecraft
