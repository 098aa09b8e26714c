#include "stagecraft/actors/launch/fleet/place.h"

#include <utility>

#include "stagecraft/base/check.h"

namespace stagecraft {

bool Place::is_free() const {
  return state_ == PlaceState::Queued || state_ == PlaceState::Expected ||
         state_ == PlaceState::Started || state_ == PlaceState::LetIn;
}

bool Place::is_connected() const {
  return state_ == PlaceState::Joined || state_ == PlaceState::Condemned;
}

void Place::call(bool comes_by_itself) {
  if (state_ == PlaceState::Empty) {
    state_ = comes_by_itself ? PlaceState::Expected : PlaceState::Queued;
  }
}

void Place::start() {
  if (state_ == PlaceState::Queued) {
    state_ = PlaceState::Started;
  }
}

void Place::take_back() {
  if (state_ == PlaceState::Started) {
    state_ = PlaceState::Queued;
  }
}

std::unique_ptr<WorkerChild> Place::keep(std::unique_ptr<WorkerChild> child,
                                         std::int64_t incarnation) {
  if (incarnation != incarnation_) {
    return child;
  }
  child_ = std::move(child);
  return nullptr;
}

void Place::let_in() {
  if (state_ == PlaceState::Started) {
    state_ = PlaceState::LetIn;
  }
}

void Place::join(FleetMember member) {
  SC_CHECK(is_free(), "a worker joins where one is wanted");
  member_ = std::move(member);
  state_ = PlaceState::Joined;
}

void Place::process_ended(const std::string& how) {
  if (state_ == PlaceState::Started || state_ == PlaceState::LetIn) {
    state_ = PlaceState::Failed;
    settle(PlaceEnd::Kind::Ended, how);
  } else if (is_connected() || state_ == PlaceState::Silent) {
    state_ = PlaceState::Gone;
    settle(PlaceEnd::Kind::Ended, how);
  }
}

bool Place::condemn(const std::string& why) {
  if (state_ != PlaceState::Joined) {
    return false;
  }
  state_ = PlaceState::Condemned;
  settle(PlaceEnd::Kind::Condemned, why);
  return true;
}

void Place::disconnected(Clock::Time now) {
  if (state_ == PlaceState::Joined && child_ != nullptr) {
    state_ = PlaceState::Silent;
    silent_since_ = now;
  } else if (is_connected()) {
    state_ = PlaceState::Gone;
    settle(PlaceEnd::Kind::Silent, "");
  }
}

void Place::look(Clock::Time now) {
  if (state_ == PlaceState::Silent && now >= silent_since_ + kMoment) {
    state_ = PlaceState::Gone;
    settle(PlaceEnd::Kind::Silent, "");
  }
}

std::unique_ptr<WorkerChild> Place::vacate() {
  std::unique_ptr<WorkerChild> child = std::move(child_);
  const std::int64_t next = incarnation_ + 1;
  *this = Place();
  incarnation_ = next;
  return child;
}

void Place::kill() const {
  if (child_ != nullptr) {
    child_->kill();
  } else if (member_) {
    caf::anon_send_exit(member_->host, caf::exit_reason::kill);
  }
}

/// Keeps PS-2.
void Place::settle(PlaceEnd::Kind kind, const std::string& text) {
  if (!end_) {
    end_ = PlaceEnd{.kind = kind, .text = text};
  }
}

}  // namespace stagecraft
