/// FuseReport: which operators of a stage were fused, and why their neighbours were not. For
/// people.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace stagecraft {

/// Operators below autograd: in fused passes, and one by one beside them.
struct PassCounts {
  std::size_t fused = 0, alone = 0, passes = 0;

  friend bool operator==(const PassCounts&, const PassCounts&) = default;
};

struct FuseReport {
  struct Region {
    std::string operators;  ///< "add rms_norm"
    PassCounts forward, backward;
    std::string fault;  ///< why it runs one by one; empty where it does not

    friend bool operator==(const Region&, const Region&) = default;
  };
  /// An operator that could have been in a region.
  struct Left {
    std::string name, why;

    friend bool operator==(const Left&, const Left&) = default;
  };
  std::vector<Region> regions;
  std::vector<Left> left;
};

/// Lines of two spaces and text; what is alike is told once, with its number.
[[nodiscard]] std::string to_string(const FuseReport& report);

}  // namespace stagecraft
