/// PassTime is the time of one pass of a compilation (passes.h). A program keeps the passes of
/// compile, an execution those of lowering.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stagecraft {

struct PassTime {
  std::string_view name;  ///< that of a list of passes, so it lives as long as the process
  double seconds = 0;     ///< on the calling thread, from beginning to end
};

/// Returns a line with the total, and one for each pass; an empty text for no passes. `did`: what
/// the passes did, as in "compiled in 3.1 ms".
[[nodiscard]] std::string to_string(const std::vector<PassTime>& times,
                                    std::string_view did = "compiled");

}  // namespace stagecraft
