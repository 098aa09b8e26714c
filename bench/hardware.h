/// What a benchmark prints beside its figures: they mean nothing without it.
#pragma once

#include <string>
#include <vector>

namespace stagecraft::bench {

/// Processor, processors usable, compiler and LibTorch version, in one line.
[[nodiscard]] std::string hardware();

/// How many threads of the machine, on average, were running or ready in the last minute.
[[nodiscard]] double load();

/// The middle of `samples`. Requires: not empty.
[[nodiscard]] double median(std::vector<double> samples);

}  // namespace stagecraft::bench
