/// HostsSoak causes faults between hosts: links that are down, drop or are slow, hosts that are
/// lost, and strangers' bytes; and faults of the processes there.
///
///   host-0 driver    host-1 to host-4 a worker each    host-5 somebody else
///
/// Uses network namespaces of this machine (TestHosts). The thread that makes it is on host-0 from
/// then on.
#pragma once

#include <array>
#include <memory>

#include "stagecraft/tests/soak/fault.h"

namespace stagecraft::tests {

inline constexpr std::array<const char*, 13> kHostFaults{"kill",
                                                         "save",
                                                         "stop",
                                                         "link",
                                                         "driver-link",
                                                         "deaf",
                                                         "mute",
                                                         "between",
                                                         "slow",
                                                         "gone",
                                                         "garbage",
                                                         "replay",
                                                         "driver"};

/// Throws std::runtime_error with the reason if this machine can have no hosts for tests.
[[nodiscard]] std::unique_ptr<Soak> make_hosts_soak(const SoakOptions& options);

}  // namespace stagecraft::tests
