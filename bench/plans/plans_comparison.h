/// Comparison measures the gain of planning for one subject on a number of workers. It compares the
/// cut and schedule that `auto` chooses with the subject's own cut, a cut into equally many
/// operators, and a cut into equal times, each by 1F1B.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "stagecraft/bench/plans/plans_ways.h"

namespace stagecraft::bench {

/// Verdict compares `auto` with the way of the fastest median among the others.
enum class Verdict : std::uint8_t {
  Wins,         ///< its quartiles lie below the other's
  WithinNoise,  ///< the ranges between the quartiles of both overlap
  Slower,
};

[[nodiscard]] Verdict verdict_of(const Quartiles& ours, const Quartiles& other);
[[nodiscard]] std::string to_string(Verdict verdict);

struct Comparison {
  std::string name;  ///< the subject's
  int workers = 0;
  std::vector<MeasuredWay> ways;  ///< the first is one worker, the last is `auto`
  /// Considers only ways that fit the memory.
  Verdict verdict = Verdict::Wins;
};

/// Measures. `memory`: of every worker; `auto` plans for it. Units: bytes.
/// Errors: those of plan().
[[nodiscard]] Comparison compare(const Subject& subject,
                                 const WaysOptions& options,
                                 double memory = std::numeric_limits<double>::infinity());

/// Returns a line for each way, and one for the verdict.
[[nodiscard]] std::string text_of(const Comparison& comparison, double memory);

/// Returns "auto wins 3, within the noise 1, slower 1 of 5: vit on 4 workers".
[[nodiscard]] std::string summary_of(const std::vector<Comparison>& all);

}  // namespace stagecraft::bench
