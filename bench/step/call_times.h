/// CallTimes measures how long the operators, the nodes of autograd and the allocator ran inside a
/// rank's tasks, each without the calls inside it.
///
/// StepProbe makes one for each rank and feeds it on that rank's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "stagecraft/bench/step/self_times.h"
#include "stagecraft/bench/step/step_bill.h"

namespace stagecraft::bench {

/// CallTime sums up all calls of one name.
struct CallTime {
  std::string name;
  Part part = Part::Runtime;
  double seconds = 0.0;
  std::int64_t calls = 0;
};

class CallTimes {
 public:
  /// Units: nanoseconds of a clock that does not go back.
  void begin(std::string_view name, std::int64_t now);
  void begin_allocator(std::int64_t now);
  /// Ends the call that began last. Requires: one has begun.
  void end(std::int64_t now) { times_.end(now); }

  /// Returns the calls that ended since the last take.
  [[nodiscard]] std::vector<CallTime> take();

 private:
  struct HashText {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };

  std::size_t account_of(std::string_view name);

  SelfTimes times_;
  std::vector<CallTime> accounts_{{.name = "allocator", .part = Part::Allocator}};
  std::unordered_map<std::string, std::size_t, HashText, std::equal_to<>> numbers_;
};

}  // namespace stagecraft::bench
