#include "stagecraft/actors/launch/fleet/fleet_credentials.h"

#include <filesystem>
#include <utility>

#include "stagecraft/actors/security/cluster_credentials.h"
#include "stagecraft/actors/security/credentials.h"

namespace stagecraft {
namespace {

/// Number of members made at once; others are made when they are needed.
constexpr int kMembers = 4;
constexpr std::chrono::hours kMemberLife{24};

std::unique_ptr<TemporaryCredentials> made_for(const SpawnOptions& options) {
  if (!options.credentials.empty()) {
    return nullptr;
  }
  return options.meeting_place.empty() ? std::make_unique<TemporaryCredentials>(kMembers)
                                       : std::make_unique<TemporaryCredentials>(
                                             kMembers, options.meeting_place + "/credentials");
}

}  // namespace

FleetCredentials::FleetCredentials(const SpawnOptions& options, std::shared_ptr<const Clock> clock)
    : clock_(std::move(clock)),
      made_(made_for(options)),
      dir_(made_ ? made_->dir() : options.credentials),
      driver_issued_(clock_->now()) {}

Credentials FleetCredentials::of_driver() const {
  return load_driver_credentials(dir_);
}

std::string FleetCredentials::of_place(int place) const {
  return dir_ + "/" + worker_name(place);
}

void FleetCredentials::renew(int place, bool is_first) {
  const std::scoped_lock lock(mutex_);
  if (!made_ || (is_first && std::filesystem::exists(of_place(place)))) {
    return;
  }
  made_->issue(worker_name(place), kMemberLife);
  const Clock::Time now = clock_->now();
  if (now > driver_issued_ + kMemberLife / 24) {  // a connection checks both ends' certificates
    made_->issue(security::kDriverMember, kMemberLife);
    driver_issued_ = now;
  }
}

}  // namespace stagecraft
