/// StrategyFaults collects the faults of a strategy, so that a user can repair all of them at once.
/// apply() and its directives use it. A value.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "stagecraft/scheduler/strategy/strategy.h"

namespace stagecraft {

class StrategyFaults {
 public:
  explicit StrategyFaults(const Strategy& strategy) : strategy_(&strategy) {}

  /// Notes a fault of a directive, by its position in the strategy: "directive 3 (line 5), place
  /// {PP:9} on [0]: ...".
  void note(std::size_t directive, const std::string& what);
  /// Notes a fault of the strategy as a whole.
  void note(std::string what) { faults_.push_back(std::move(what)); }

  [[nodiscard]] bool none() const { return faults_.empty(); }
  /// Errors: ScheduleInvalid, with all faults, if there is any.
  void refuse_if_any() const;

 private:
  const Strategy* strategy_;
  std::vector<std::string> faults_;
};

}  // namespace stagecraft
