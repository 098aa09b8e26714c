/// What a benchmark prints beside its figures: they mean nothing without it.
#pragma once

#include <string>

namespace stagecraft::bench {

/// Processor, processors usable, compiler and LibTorch version, in one line.
[[nodiscard]] std::string hardware();

/// How many threads of the machine, on average, were running or ready in the last minute.
[[nodiscard]] double load();

}  // namespace stagecraft::bench
