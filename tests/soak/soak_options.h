/// SoakOptions are the options of the soak program; kind_of draws the kind of each fault.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace stagecraft::tests {

struct SoakOptions {
  int faults = 20;
  std::uint64_t seed = 1;
  std::chrono::milliseconds silence{1000};
  std::string only;
  bool hosts = false;    ///< workers on separate hosts
  bool command = false;  ///< strikes `stagecraft train --restarts`
  bool driver = false;   ///< this is the driver to be killed
};

/// Uses every kind equally often, in an order that the seed determines.
[[nodiscard]] inline std::string kind_of(const SoakOptions& options,
                                         std::span<const char* const> kinds,
                                         int number) {
  if (!options.only.empty()) {
    return options.only;
  }
  const int size = static_cast<int>(kinds.size());
  std::vector<std::string> order(kinds.begin(), kinds.end());
  std::mt19937_64 random(options.seed * 1'000 + static_cast<std::uint64_t>(number / size));
  std::ranges::shuffle(order, random);
  return order[static_cast<std::size_t>(number % size)];
}

}  // namespace stagecraft::tests
