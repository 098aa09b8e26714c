/// FleetCredentials: the credentials of a fleet and of each of its places: given ones, or new ones
/// that the fleet makes and removes at its end.
///
/// Owned by the fleet, whose mutex guards renew().
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "stagecraft/actors/cluster/cluster.h"
#include "stagecraft/actors/security/temporary_credentials.h"

namespace stagecraft {

class FleetCredentials {
 public:
  /// Takes the credentials that `options` name, else makes new ones: in the meeting place, or in a
  /// private folder.
  /// Errors: those of TemporaryCredentials.
  explicit FleetCredentials(const SpawnOptions& options);

  /// Returns the driver's folder.
  [[nodiscard]] std::string of_driver() const;
  [[nodiscard]] std::string of_place(int place) const;

  /// Call it before a worker starts in a place: gives it, and the driver, credentials that last for
  /// most of a day. Does not change given ones. Errors: those of issue_member.
  void renew(int place, bool is_first);

 private:
  std::unique_ptr<const TemporaryCredentials> made_;  ///< null if they were given
  std::string dir_;
  std::chrono::steady_clock::time_point driver_issued_ = std::chrono::steady_clock::now();
};

}  // namespace stagecraft
