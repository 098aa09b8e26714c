/// require states the promises of a fuzz target for every input.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace stagecraft::fuzz {

/// Ends the program, so that the fuzzer keeps the input, when `holds` is false.
inline void require(bool holds, std::string_view promise) {
  if (!holds) {
    std::fprintf(
        stderr, "broken promise: %.*s\n", static_cast<int>(promise.size()), promise.data());
    std::abort();
  }
}

}  // namespace stagecraft::fuzz
