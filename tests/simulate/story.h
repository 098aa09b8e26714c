/// Story is what happened in a simulated run, event by event.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/base/clock.h"

namespace stagecraft::simulation {

class Story {
 public:
  /// `who`: "driver", "rank 2".
  void tell(Clock::Time::duration when, std::string who, std::string what) {
    events_.push_back({when, std::move(who), std::move(what)});
  }

  /// Returns a line for each event, with its time in milliseconds since the run began.
  [[nodiscard]] std::string text() const;

 private:
  struct Event {
    Clock::Time::duration when;
    std::string who, what;
  };
  std::vector<Event> events_;
};

}  // namespace stagecraft::simulation
