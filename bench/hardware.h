/// What a benchmark prints beside its figures: they mean nothing without it.
#pragma once

#include <string>
#include <vector>

namespace stagecraft::bench {

/// Processor, processors usable, compiler and LibTorch version, in one line.
[[nodiscard]] std::string hardware();

/// The middle of `samples`. Requires: not empty.
[[nodiscard]] double median(std::vector<double> samples);

}  // namespace stagecraft::bench
