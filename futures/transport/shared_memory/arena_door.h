/// ArenaDoor takes the arenas that other processes of this host offer to a data port (ArenaOffer).
///
/// The thread of the port owns it. Who offers is known only by user; a message of an admitted peer
/// that names the arena, whose id nobody can guess, says to whom it belongs (claim()).
/// AD-1: processes of other users are refused before anything is read. Of connections that say
///       nothing at most kMostSilent are kept, and the oldest is ended. At most kMostUnclaimed
///       arenas are kept, and further ones are refused.
/// AD-2: an arena whose offer ends before it is claimed is kept for kEnded, because messages of a
///       process that has ended may still be on their way; of these at most kMostEnded. It goes
///       when the door is next looked at.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "stagecraft/futures/transport/shared_memory/descriptor.h"
#include "stagecraft/futures/transport/shared_memory/slot_view.h"

namespace stagecraft {

class ArenaDoor {
 public:
  static constexpr std::size_t kMostSilent = 64;
  static constexpr std::size_t kMostUnclaimed = 1024;
  static constexpr std::size_t kMostEnded = 64;
  static constexpr std::chrono::seconds kEnded{10};

  /// Makes a door that takes no offers.
  ArenaDoor() = default;
  /// Takes offers to the port with this public key. If the system does not allow it, the reason is
  /// logged, and nobody can offer anything.
  explicit ArenaDoor(const std::string& key);

  /// Returns the descriptors to poll: if one can be read, call look().
  [[nodiscard]] const std::vector<int>& events() const { return events_; }
  /// Takes the offers that are there.
  void look(std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now());

  /// Claimed is an arena with the connection over which it was offered; none if that has ended.
  struct Claimed {
    std::shared_ptr<SlotView> view;
    Descriptor connection;
  };

  /// Returns the arena with this id, once; a null view if none was offered.
  [[nodiscard]] Claimed claim(ArenaId arena);

 private:
  struct Offer {
    Descriptor connection;  ///< none when it has ended
    ArenaId arena;
    std::shared_ptr<SlotView> view;  ///< null while the connection says nothing
    std::chrono::steady_clock::time_point ended;
  };

  void accept_some();
  [[nodiscard]] static bool answer(const Offer& offer);
  /// Reads what an offer says. Returns false if it is over.
  [[nodiscard]] bool hear(Offer& offer) const;
  void drop_ended(std::chrono::steady_clock::time_point now);
  void list_events();

  Descriptor listening_;
  Descriptor spare_;          ///< closed to refuse a connection when no more files may be open
  std::deque<Offer> silent_;  ///< the oldest first
  std::deque<Offer> unclaimed_;
  std::vector<int> events_;
};

}  // namespace stagecraft
