/// FleetCredentials: what a fleet shows, and what it gives each of its places to show: credentials
/// that it was given, or makes for itself and removes in the end.
///
/// Owned by the fleet, whose mutex guards renew().
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "stagecraft/actors/cluster.h"
#include "stagecraft/actors/security/temporary_credentials.h"

namespace stagecraft {

class FleetCredentials {
 public:
  /// Those that `options` name, else new ones: where they say, or in a private folder.
  /// Errors: those of TemporaryCredentials.
  explicit FleetCredentials(const SpawnOptions& options);

  /// The driver's folder.
  [[nodiscard]] std::string of_driver() const;
  [[nodiscard]] std::string of_place(int place) const;

  /// Before a worker is started in a place: has it, and the driver, credentials that last for most
  /// of a day. Given ones are left as they are. Errors: those of issue_member.
  void renew(int place, bool is_first);

 private:
  std::unique_ptr<const TemporaryCredentials> made_;  ///< null where they were given
  std::string dir_;
  std::chrono::steady_clock::time_point driver_issued_ = std::chrono::steady_clock::now();
};

}  // namespace stagecraft
