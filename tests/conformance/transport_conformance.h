/// Holds the contract of `futures/transport/transport.h` as a list of cases that every transport
/// has to pass.
///
/// A transport's own test makes a network of it and runs the list:
///
///     TEST_CASE("the X transport keeps the transport contract", "[futures][transport]") { const
///       TransportCase& contract = GENERATE(from_range(transport_cases()));
///       DYNAMIC_SECTION(contract.name) { contract.run(make_x_endpoints); } }
///
/// No case expects a tensor to be there at once: every case waits for arrival.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "stagecraft/futures/transport/transport.h"

namespace stagecraft {

/// Holds all ends of one new network, which live as long as this does.
struct Endpoints {
  std::shared_ptr<Transport> driver;
  std::vector<std::shared_ptr<Transport>> ranks;
  /// Ends the process of a rank, with all that it has, as soon as it has sent this many bytes.
  /// Returns the end of the rank's successor, which the others know. Empty if all ranks share a
  /// process.
  std::function<std::shared_ptr<Transport>(Rank, std::int64_t after_bytes)> replace;
};

using MakeEndpoints = std::function<Endpoints(int ranks)>;

struct TransportCase {
  std::string name;  ///< a sentence, with the invariant it exercises
  void (*run)(const MakeEndpoints&);
};

[[nodiscard]] const std::vector<TransportCase>& transport_cases();

}  // namespace stagecraft
