/// Holds the networks on which the contract of transports is tested. Together they use every
/// transport of the table (futures/routing/transport_choice.h); transport_conformance_test.cc runs
/// the contract on each, and fails for a transport that none of them uses.
#pragma once

#include <span>
#include <string_view>

#include "stagecraft/tests/conformance/transport_case.h"

namespace stagecraft {

struct TransportForm {
  std::string_view name;
  Endpoints (*ends)(int ranks);  ///< makes the ends of a new network
};

[[nodiscard]] std::span<const TransportForm> transport_forms();

/// The driver and all ranks share a process.
[[nodiscard]] Endpoints in_one_process(int ranks);

/// Each has a process of its own, and all share memory.
[[nodiscard]] Endpoints over_shared_memory(int ranks);

/// The driver lives beside rank 0, ranks 1 and 2 live together, then 3 and 4, and so on.
[[nodiscard]] Endpoints here_and_elsewhere(int ranks);

}  // namespace stagecraft
