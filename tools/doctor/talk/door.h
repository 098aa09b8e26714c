/// Door is a listening socket of the doctor, by which other hosts test whether they reach this
/// host. It sends its own token to every client, so that no client takes another port for it.
#pragma once

#include <cstdint>
#include <string>
#include <thread>

namespace stagecraft::tools {

/// DoorPlace is the address of a door, for the hosts that try it.
struct DoorPlace {
  std::string address;  ///< in digits
  std::uint16_t port = 0;
  std::string token;
};

class Door {
 public:
  /// Opens a door at any free port of `address`, one of this host's in digits.
  /// Errors: ClusterMember if none can be opened there.
  explicit Door(const std::string& address);
  ~Door();
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  [[nodiscard]] const DoorPlace& place() const { return place_; }

 private:
  void welcome() const;

  DoorPlace place_;
  int listening_ = -1;
  std::thread thread_;
};

}  // namespace stagecraft::tools
