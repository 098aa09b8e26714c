/// Comparison: what planning gains for one subject on so many workers: cut and schedule that `auto`
/// chooses, beside its own cut, one into equally many operators, and one into equal times, each by
/// 1F1B.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "stagecraft/bench/plans_ways.h"

namespace stagecraft::bench {

/// Of `auto`, against the fastest of the others by its median.
enum class Verdict : std::uint8_t {
  Wins,         ///< between quartiles it lies below the other
  WithinNoise,  ///< what lies between the quartiles of both overlaps
  Slower,
};

[[nodiscard]] Verdict verdict_of(const Quartiles& ours, const Quartiles& other);
[[nodiscard]] std::string to_string(Verdict verdict);

struct Comparison {
  std::string name;  ///< of the subject
  int workers = 0;
  std::vector<MeasuredWay> ways;  ///< the first is one worker, the last is `auto`
  /// By ways that fit the memory alone.
  Verdict verdict = Verdict::Wins;
};

/// Measures. `memory`: of every worker, that `auto` plans for. Units: bytes.
/// Errors: those of plan().
[[nodiscard]] Comparison compare(const Subject& subject,
                                 const WaysOptions& options,
                                 double memory = std::numeric_limits<double>::infinity());

/// A line for each way, and one for the verdict.
[[nodiscard]] std::string text_of(const Comparison& comparison, double memory);

/// "auto wins 3, within the noise 1, slower 1 of 5: vit on 4 workers".
[[nodiscard]] std::string summary_of(const std::vector<Comparison>& all);

}  // namespace stagecraft::bench
