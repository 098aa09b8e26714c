/// Story is what happened in a simulated run, event by event.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/base/clock.h"

namespace stagecraft::simulation {

class Story {
 public:
  /// `who`: "driver", "rank 2".
  void tell(Clock::Time::duration when, std::string who, std::string what) {
    events_.push_back({when, std::move(who), std::move(what)});
  }
  void clear() { events_.clear(); }

  /// Returns a line for each event, with its time in milliseconds since the run began.
  [[nodiscard]] std::string text() const {
    std::string text;
    for (const Event& event : events_) {
      text += fmt::format("{:>12.3f} ms  {:<8}  {}\n",
                          std::chrono::duration<double, std::milli>(event.when).count(),
                          event.who,
                          event.what);
    }
    return text;
  }

 private:
  struct Event {
    Clock::Time::duration when;
    std::string who, what;
  };
  std::vector<Event> events_;
};

}  // namespace stagecraft::simulation
