/// ArenaOffer hands an arena's memory to another process of this host, at its ArenaDoor. Nothing
/// here waits.
///
///   sender    connects, sends the arena's id with the memory's descriptor
///   receiver  judges both, and answers one byte; or closes the connection
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "stagecraft/futures/transport/shared_memory/descriptor.h"
#include "stagecraft/futures/transport/shared_memory/slot_ref.h"

namespace stagecraft {

class ArenaOffer {
 public:
  enum class Answer { None, Taken, Refused };

  /// Offers memory to the port with this public key. Returns nothing if that is not a process of
  /// this host, its network and this user.
  [[nodiscard]] static std::optional<ArenaOffer> make(const std::string& key,
                                                      ArenaId arena,
                                                      const Descriptor& memory);

  /// Returns the answer so far.
  [[nodiscard]] Answer answer() const;

 private:
  explicit ArenaOffer(Descriptor connection) : connection_(std::move(connection)) {}

  Descriptor connection_;
};

}  // namespace stagecraft
