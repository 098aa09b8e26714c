/// PortCounts holds the traffic of a data port, for tests, reports and the user. PortCounter counts
/// it on all threads of the port; its mutex guards the counts.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace stagecraft {

/// LinkCounts holds the traffic with one peer.
struct LinkCounts {
  std::int64_t tensors_sent = 0;
  std::int64_t bytes_sent = 0;    ///< of tensors, chunk by chunk
  std::int64_t bytes_shared = 0;  ///< of bytes_sent, those through shared memory
  std::int64_t tensors_received = 0;
  std::int64_t bytes_received = 0;
  std::int64_t tensors_dropped =
      0;                            ///< waited for a peer that was forgotten, or was never admitted
  std::int64_t frames_refused = 0;  ///< malformed, of a broken link, or of a key no longer admitted
};

struct PortCounts {
  std::map<std::string, LinkCounts> links;  ///< of all peers, past ones included
  std::int64_t connections_held = 0;        ///< handshakes with keys that were not admitted
  std::int64_t strangers_ended = 0;         ///< connections whose handshake took too long (DP-7)
  std::int64_t tensors_misdirected = 0;     ///< for a network or a rank that is not here
  std::int64_t partial_bytes = 0;           ///< memory of tensors that have arrived in part
};

class PortCounter {
 public:
  /// Calls `change` with all counts, and returns its result.
  template <class Change>
  auto change(Change&& change) {
    const std::scoped_lock lock(mutex_);
    return change(counts_);
  }

  /// Calls `change` with the counts of the peer with this key, and returns its result.
  template <class Change>
  auto change_link(const std::string& key, Change&& change) {
    const std::scoped_lock lock(mutex_);
    return change(counts_.links[key]);
  }

  [[nodiscard]] PortCounts counts() const {
    const std::scoped_lock lock(mutex_);
    return counts_;
  }

 private:
  mutable std::mutex mutex_;
  PortCounts counts_;
};

}  // namespace stagecraft
