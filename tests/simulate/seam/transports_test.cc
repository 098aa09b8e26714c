/// Runs the contract of transports on the simulated network, to which the other forms of
/// tests/conformance/transport_forms.h keep it too.
#include <cstdint>
#include <memory>

#include "stagecraft/tests/conformance/transport_conformance.h"
#include "stagecraft/tests/simulate/rank_end.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft::simulation {
namespace {

/// Returns the ends of a driver and of ranks in processes of their own. None is replaced, because
/// tensors of a predecessor can arrive late in a simulation (docs/reliability.md).
Endpoints simulated_ends(Network& network, int ranks) {
  const auto ends =
      std::make_shared<Ends>(Ends{.network = network, .of_ranks = {}, .of_driver = {}});
  const auto driver = std::make_shared<RankEnd>(ends, kDriver, 0);
  ends->of_driver = driver;
  Endpoints made;
  made.driver = driver;
  for (int r = 0; r < ranks; ++r) {
    const auto end = std::make_shared<RankEnd>(ends, Rank(r), r + 1);
    ends->of_ranks.emplace_back(end);
    made.ranks.push_back(end);
  }
  return made;
}

TEST_CASE("the simulated network keeps the contract of transports",
          "[simulate][seam][conformance]") {
  const TransportCase& contract = GENERATE(from_range(transport_cases()));
  DYNAMIC_SECTION(contract.name) {
    if (contract.has_threads) {
      SUCCEED("a simulation has one thread at a time");
      return;
    }
    for (std::uint64_t seed = 0; seed < 5; ++seed) {
      INFO("seed " << seed);
      World world(seed);
      const auto network = std::make_shared<Network>(world);
      world.run([&] { contract.run([&](int ranks) { return simulated_ends(*network, ranks); }); });
    }
  }
}

}  // namespace
}  // namespace stagecraft::simulation
