/// ArenaDoor takes the arenas that other processes of this host offer to a data port (ArenaOffer).
///
/// The thread of the port owns it. Who offers is known only by user; a message of an admitted peer
/// that names the arena, whose id nobody can guess, says to whom it belongs (claim()).
/// AD-1: processes of other users are refused before anything is read. At most kMostWaiting
///       connections and kMostUnclaimed arenas are held; then the oldest is ended.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "stagecraft/futures/transport/shared_memory/descriptor.h"
#include "stagecraft/futures/transport/shared_memory/slot_view.h"

namespace stagecraft {

class ArenaDoor {
 public:
  static constexpr std::size_t kMostWaiting = 64;
  static constexpr std::size_t kMostUnclaimed = 1024;

  /// Makes a door that nobody can find.
  ArenaDoor() = default;
  /// Listens for offers to the port with this public key. If the system does not allow it, the
  /// reason is logged, and nobody can offer anything.
  explicit ArenaDoor(const std::string& key);

  /// Returns the descriptors to poll: if one can be read, call look().
  [[nodiscard]] std::vector<int> events() const;
  /// Takes the offers that are there.
  void look();

  /// Returns the arena with this id, once; null if none was offered.
  [[nodiscard]] std::shared_ptr<SlotView> claim(ArenaId arena);

 private:
  using Unclaimed = std::pair<ArenaId, std::shared_ptr<SlotView>>;

  /// Returns false if the offer has not arrived yet.
  [[nodiscard]] bool take(const Descriptor& connection);

  Descriptor listening_;
  std::deque<Descriptor> waiting_;  ///< connections without an offer, oldest first
  std::deque<Unclaimed> unclaimed_;
};

}  // namespace stagecraft
