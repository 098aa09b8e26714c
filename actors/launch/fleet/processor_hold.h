/// ProcessorHold holds all processes of a fleet to the code of one processor, and remembers the
/// last report about processors that differ.
///
/// A fleet has one. Any thread may use it; a mutex guards both, because crews connect on threads of
/// their callers.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "stagecraft/actors/executor/device/processor.h"

namespace stagecraft {

class ProcessorHold {
 public:
  /// `tell`: as in SpawnOptions.
  explicit ProcessorHold(std::function<void(const std::string& line)> tell)
      : tell_(std::move(tell)) {}

  /// Holds all processes of this cluster, also later ones, to a capability. Call it before the
  /// first trainer.
  void hold(const std::string& capability);
  /// Returns that capability; empty if there is none.
  [[nodiscard]] std::string capability() const;
  /// Returns the facts of a process that has joined with these facts, after it is held.
  [[nodiscard]] ProcessorFacts held(const ProcessorFacts& processor) const;

  /// Reports to people and the log the ranks that compute with other code, once until that changes.
  void tell(const std::vector<NamedProcessor>& ranks);

 private:
  const std::function<void(const std::string& line)> tell_;
  mutable std::mutex mutex_;
  std::string capability_;
  std::string reported_;  ///< the last report
};

}  // namespace stagecraft
