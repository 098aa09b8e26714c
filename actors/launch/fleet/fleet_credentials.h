/// FleetCredentials holds the credentials of a fleet and of each of its places: given ones, or new
/// ones that the fleet makes and removes at its end.
///
/// The fleet owns it. A mutex guards renew(), because several callers may want workers at once.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>

#include "stagecraft/actors/launch/ways/spawn_options.h"
#include "stagecraft/actors/security/credential_paths.h"
#include "stagecraft/actors/security/temporary_credentials.h"
#include "stagecraft/base/clock.h"

namespace stagecraft {

class FleetCredentials {
 public:
  /// Takes the credentials that `options` name; if there are none, makes new ones in the meeting
  /// place, or in a private folder.
  /// Errors: those of TemporaryCredentials.
  FleetCredentials(const SpawnOptions& options, std::shared_ptr<const Clock> clock);

  /// Returns the driver's credentials. Errors: those of load_driver_credentials.
  [[nodiscard]] Credentials of_driver() const;
  /// Returns the folder of a place.
  [[nodiscard]] std::string of_place(int place) const;

  /// Gives a place, and the driver, credentials that last for most of a day. Call it before a
  /// worker starts in the place. Does not change given ones.
  /// Errors: those of TemporaryCredentials::issue.
  void renew(int place, bool is_first);

 private:
  const std::shared_ptr<const Clock> clock_;
  const std::unique_ptr<const TemporaryCredentials> made_;  ///< null if they were given
  const std::string dir_;
  std::mutex mutex_;
  Clock::Time driver_issued_;
};

}  // namespace stagecraft
