/// start_turns decides which workers may start now, so that no host gets more connections at once
/// than its sshd takes.
///
/// An sshd refuses connections, at random, while ten or more wait to be admitted (default of
/// MaxStartups of OpenSSH). Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "stagecraft/actors/launch/network/hosts.h"

namespace stagecraft {

/// The number of workers of one host that may wait for admission at the same time.
inline constexpr int kKnocking = 8;

enum class StartState : std::uint8_t {
  Queued,    ///< waits for its start
  Knocking,  ///< started, but ssh has not connected yet
  Settled,   ///< neither
};

/// Returns the places to start now, in ascending order. Places fill the hosts one after the other.
/// Places beyond them are on this host, where no worker has to knock.
[[nodiscard]] std::vector<int> start_turns(const std::vector<Host>& hosts,
                                           std::span<const StartState> places);

}  // namespace stagecraft
