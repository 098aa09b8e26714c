/// start_turns: whose turn it is to be started, so that no host is asked for more at once than its
/// sshd takes.
///
/// An sshd turns connections away, at random, while ten or more are there that it has not let in
/// yet (MaxStartups of OpenSSH, unless told otherwise). Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "stagecraft/actors/hosts.h"

namespace stagecraft {

/// Workers of one host that may wait to be let in at a time.
inline constexpr int kKnocking = 8;

enum class StartState : std::uint8_t {
  Queued,    ///< to be started
  Knocking,  ///< started, and ssh is not through yet
  Settled,   ///< neither
};

/// Places to start now, in ascending order, of hosts that are filled one after the other. Places
/// beyond them are on this host, where nobody has to knock.
[[nodiscard]] std::vector<int> start_turns(const std::vector<Host>& hosts,
                                           std::span<const StartState> places);

}  // namespace stagecraft
