/// ArenaOffer hands an arena's memory to another process of this host, at its ArenaDoor. Nothing
/// here waits.
///
///   sender    connects, sends the arena's id with the memory's descriptor, and that of the memory
///             in which it lends tensors, if there is any
///   receiver  judges them, and answers one byte; or closes the connection
///
/// Both keep the connection as long as they use the arena: the sender rings over it when the
/// receiver sleeps, and each learns from its end that the other is gone.
#pragma once

#include <optional>
#include <string>

#include "stagecraft/futures/transport/shared_memory/descriptor.h"
#include "stagecraft/futures/transport/shared_memory/slot_ref.h"

namespace stagecraft {

class ArenaOffer {
 public:
  enum class Answer { None, Taken, Refused };

  /// Connects to the port with this public key. is_possible() and is_connected() say with what
  /// result.
  explicit ArenaOffer(const std::string& key);

  /// Returns whether the port is a process of this host, its network and this user, as far as can
  /// be said now.
  [[nodiscard]] bool is_possible() const { return is_possible_; }
  /// Returns whether memory can be offered now. If it is possible and this is false, try again
  /// later: the door is busy, or too many files are open.
  [[nodiscard]] bool is_connected() const { return static_cast<bool>(connection_); }

  /// Offers the memory. Returns false if the other end is gone. Requires: is_connected().
  /// `lent`: may be null.
  [[nodiscard]] bool send(ArenaId arena, const Descriptor& memory, const Descriptor* lent) const;

  /// Returns the answer so far.
  [[nodiscard]] Answer answer() const;
  /// Wakes the receiver's port. Returns false if the receiver uses the arena no more.
  [[nodiscard]] bool ring() const;

 private:
  bool is_possible_ = true;
  Descriptor connection_;
};

}  // namespace stagecraft
