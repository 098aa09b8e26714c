/// AttachedNetworks finds the mailboxes of each network that has ranks in this process, and knows
/// the keys of the ranks that are elsewhere.
///
/// A data port has one. Networks attach and detach on any thread; the thread of the port finds
/// mailboxes. The mutex guards the table and is held for one lookup at a time.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "stagecraft/futures/transport/mailboxes.h"
#include "stagecraft/futures/transport/zmq/frames/frame.h"

namespace stagecraft {

class AttachedNetworks {
 public:
  /// Adds the mailboxes of a network. The port finds them as long as they live.
  /// Errors: UsageArgument if there is a network of that id.
  void attach(NetworkId network, const std::shared_ptr<const Mailboxes>& mailboxes);
  void detach(NetworkId network);

  /// Returns the mailboxes of a network; null for a network that is not here.
  [[nodiscard]] std::shared_ptr<const Mailboxes> find(NetworkId network) const;

  /// Says that the rank's tensors come from the port with this key, and from no other.
  void place(NetworkId network, Rank rank, const std::string& key);
  /// Returns whether the rank is in the process with this key.
  [[nodiscard]] bool is_at(NetworkId network, Rank rank, const std::string& key) const;

  /// Returns whether a network was here and is detached.
  [[nodiscard]] bool has_ended(NetworkId network) const;

 private:
  struct Attached {
    std::weak_ptr<const Mailboxes> mailboxes;
    std::map<Rank, std::string> keys;
  };

  mutable std::mutex mutex_;
  std::unordered_map<NetworkId, Attached> networks_;
  std::unordered_set<NetworkId> ended_;
};

}  // namespace stagecraft
