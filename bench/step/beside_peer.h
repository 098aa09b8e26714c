/// BesidePeer measures our steps and those of another program (peer.h) on the same model, in turns.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "stagecraft/bench/peer.h"
#include "stagecraft/bench/step/measured_model.h"
#include "stagecraft/stagecraft.h"

namespace stagecraft::bench {

/// BesidePeer holds the result. Units: seconds.
struct BesidePeer {
  struct Contender {
    std::string name;
    double step = 0.0;  ///< the median
  };
  std::vector<Contender> ours, theirs;

  /// Returns the fastest of some. Requires: there are some.
  [[nodiscard]] static const Contender& best(const std::vector<Contender>& of);
  /// Returns how many times as fast our best is as their best.
  [[nodiscard]] double reached() const { return best(theirs).step / best(ours).step; }
};

inline constexpr double kPeerGoal = 1.35;

/// Measures on two ranks of one thread each; ours are idle while the peer runs. Ours run 1F1B and
/// ZB-V. The peer runs its 1F1B and interleaved schedules, and one process of two threads.
/// Errors: std::runtime_error if the peer fails.
[[nodiscard]] BesidePeer beside_peer(const Cluster& cluster, const Peer& peer, std::int64_t dim);

[[nodiscard]] std::string text_of(const BesidePeer& result);
[[nodiscard]] nlohmann::json json_of(const BesidePeer& result);

}  // namespace stagecraft::bench
