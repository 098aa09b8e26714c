/// hardware describes the machine. A benchmark prints it beside its figures, which mean nothing
/// without it.
#pragma once

#include <string>

namespace stagecraft::bench {

/// Returns processor, usable processors, compiler and LibTorch version, in one line.
[[nodiscard]] std::string hardware();

/// Returns how many threads of the machine, on average, were running or ready in the last minute.
[[nodiscard]] double load();

}  // namespace stagecraft::bench
