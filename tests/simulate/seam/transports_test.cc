/// Runs the contract of transports on the simulated network, to which the other forms of
/// tests/conformance/transport_forms.h keep it too.
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "stagecraft/futures/routing/routed.h"
#include "stagecraft/tests/conformance/transport_conformance.h"
#include "stagecraft/tests/simulate/port.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft::simulation {
namespace {

/// Returns the ends of a driver and of ranks in processes of their own. None is replaced, because
/// tensors of a predecessor can arrive late in a simulation (docs/reliability.md).
Endpoints simulated_ends(Network& network, int ranks) {
  const auto all = std::make_shared<Ports>();
  std::vector<std::shared_ptr<Port>> ports;
  for (int process = 0; process <= ranks; ++process) {
    ports.push_back(Port::open(network, all, process));
  }
  std::deque<RoutedNetwork> networks;
  for (int process = 0; process <= ranks; ++process) {
    networks.emplace_back(ports[static_cast<std::size_t>(process)], NetworkId(1), ranks);
    for (int rank = kDriver.value; rank < ranks; ++rank) {
      networks.back().place(Rank(rank), ports[static_cast<std::size_t>(rank + 1)]->address());
    }
  }
  Endpoints made;
  made.driver = networks.front().endpoint(kDriver);
  for (int r = 0; r < ranks; ++r) {
    made.ranks.push_back(networks[static_cast<std::size_t>(r + 1)].endpoint(Rank(r)));
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
