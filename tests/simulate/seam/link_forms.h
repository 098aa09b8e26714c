/// Holds the networks on which the promises of links.h are tested.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "stagecraft/tests/simulate/seam/links.h"

namespace stagecraft::simulation {

struct LinkForm {
  std::string_view name;
  int times;  ///< how often a case runs, each time in another order if the form draws one
  /// Calls `run` with a link of its own, as the number `time` of its calls.
  void (*with)(int time, const std::function<void(LinkUnderTest&)>& run);
};

[[nodiscard]] std::span<const LinkForm> link_forms();

/// A process of its own, reached as the product reaches workers. Its main program is
/// run_other_process().
void over_tls(int time, const std::function<void(LinkUnderTest&)>& run);

/// Runs the process that over_tls() starts, as long as its listener lives; returns false at once if
/// this is no such process.
[[nodiscard]] bool run_other_process();

/// A process of a simulation. Its order of events is drawn from `time`.
void simulated(int time, const std::function<void(LinkUnderTest&)>& run);

}  // namespace stagecraft::simulation
