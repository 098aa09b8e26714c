/// Peers holds the other processes that a data port sends to and receives from: those that were
/// admitted and not forgotten, by their keys.
///
/// A process that has the key of an entry is that peer; no other process is known (DP-1). Any
/// thread may call Peers. The mutex guards the table and is held for one lookup at a time; no peer
/// is destroyed under it.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "stagecraft/futures/transport/port_address.h"
#include "stagecraft/futures/transport/shared_memory/descriptor.h"
#include "stagecraft/futures/transport/shared_memory/frame_ring.h"
#include "stagecraft/futures/transport/shared_memory/slot_view.h"
#include "stagecraft/futures/transport/zmq/frames/reassembly.h"
#include "stagecraft/futures/transport/zmq/peer_sender.h"
#include "stagecraft/futures/transport/zmq/port_options.h"

namespace stagecraft {

struct Peer {
  Peer(const PortAddress& where,
       std::uint64_t link,
       const DataPortOptions& options,
       PortSockets& sockets,
       PortCounter& counter,
       const LentMemory& lent)
      : address(where),
        sender(where, link, options, sockets, counter, lent),
        arriving(options.largest_tensor) {}

  const PortAddress address;
  PeerSender sender;

  // The rest belongs to the thread of the loop.
  Reassembly arriving;
  std::shared_ptr<SlotView> memory;  ///< that the peer shares with this process
  ArenaId arena;                     ///< of `memory`
  Descriptor bell;                   ///< rings when the peer finds this end asleep
  std::optional<RingReader> ring;    ///< in `memory`, unless the link is broken

  /// Lets go of the ring, and tells the peer by the end of its connection.
  void close_ring() {
    ring.reset();
    bell = Descriptor();
  }
  std::int64_t partial = 0;  ///< the bytes of `arriving` that are counted
};

class Peers {
 public:
  using All = std::vector<std::shared_ptr<Peer>>;

  /// The arguments must outlive this object.
  Peers(const DataPortOptions& options,
        PortSockets& sockets,
        PortCounter& counter,
        const LentMemory& lent)
      : options_(options), sockets_(sockets), counter_(counter), lent_(lent) {}

  /// Adds a peer. Returns false if it was there, or after close().
  [[nodiscard]] bool add(const PortAddress& address);
  /// Removes the peer with this key and returns it; null if there is none.
  [[nodiscard]] std::shared_ptr<Peer> remove(const std::string& key);

  /// Returns the peer with this key; null if there is none.
  [[nodiscard]] std::shared_ptr<Peer> find(const std::string& key) const;
  [[nodiscard]] bool contains(const std::string& key) const;
  [[nodiscard]] All all() const;

  /// Removes all peers and returns them. Adds none from now on.
  [[nodiscard]] All close();

 private:
  const DataPortOptions& options_;
  PortSockets& sockets_;
  PortCounter& counter_;
  const LentMemory& lent_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<Peer>> peers_;
  std::uint64_t links_ = 0;
  bool closed_ = false;
};

}  // namespace stagecraft
