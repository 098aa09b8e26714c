/// Door: a listening socket of the doctor's, by which others find out whether they reach this host:
/// it says its own token to everybody who connects, so that nobody takes another's port for it.
#pragma once

#include <cstdint>
#include <string>
#include <thread>

namespace stagecraft::tools {

/// Where one is, for those who are to try it.
struct DoorPlace {
  std::string address;  ///< in digits
  std::uint16_t port = 0;
  std::string token;
};

class Door {
 public:
  /// At any free port of `address`, which is one of this host's in digits.
  /// Errors: ClusterMember where none can be opened there.
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
