/// Holds the forms of transport that have to keep the contract: each makes the ends of a new
/// network. transport_conformance_test.cc lists them.
#pragma once

#include "stagecraft/tests/conformance/transport_case.h"

namespace stagecraft {

/// The driver and all ranks share a process.
struct InOneProcess {
  static Endpoints ends(int ranks);
};

/// Each has a process of its own.
struct OverTcp {
  static Endpoints ends(int ranks);
};

struct OverLocalSockets {
  static Endpoints ends(int ranks);
};

/// The driver lives beside rank 0, ranks 1 and 2 live together, then 3 and 4, and so on.
struct HereAndElsewhere {
  static Endpoints ends(int ranks);
};

/// FaultyTransport fails only on command.
struct FaultyWithoutFaults {
  static Endpoints ends(int ranks);
};

}  // namespace stagecraft
