/// usual_device is the device of tests that name none. A program that links the same tests with
/// devices of its own sets it before they run.
#pragma once

#include <cmath>
#include <functional>
#include <string>

namespace stagecraft::testing {

inline std::string usual_device = "cpu";
/// For programs with devices: called before a test reads or writes what ranks hold, and at the end
/// of each pipeline and each trainer.
inline std::function<void()> before_use = [] {}, at_the_end = [] {};

/// Returns whether norms of gradients are equal, as far as that device adds as the CPU does.
inline bool same_norm(double a, double b) {
  constexpr double kRounding = 1e-12;
  return usual_device == "cpu" ? a == b : std::abs(a - b) <= kRounding * std::abs(b);
}

}  // namespace stagecraft::testing
