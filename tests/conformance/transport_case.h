/// TransportCase is one case of the contract of `futures/transport/transport.h`, for any transport.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "stagecraft/futures/transport/transport.h"

namespace stagecraft {

/// Holds all ends of one new network, which live as long as this does.
struct Endpoints {
  std::shared_ptr<Transport> driver;
  std::vector<std::shared_ptr<Transport>> ranks;
  /// Names the transports that were chosen between the ends, by transport_choice.h. Empty if there
  /// was no choice.
  std::set<std::string_view> transports;
  /// Ends the process of a rank, with all that it has, as soon as it has sent this many bytes.
  /// Returns the end of the rank's successor, which the others know. Empty if all ranks share a
  /// process.
  std::function<std::shared_ptr<Transport>(Rank, std::int64_t after_bytes)> replace;
};

using MakeEndpoints = std::function<Endpoints(int ranks)>;

struct TransportCase {
  std::string name;  ///< a sentence, with the invariant it exercises
  void (*run)(const MakeEndpoints&);
  bool has_threads = false;  ///< of its own, which a simulated network cannot run
};

}  // namespace stagecraft
