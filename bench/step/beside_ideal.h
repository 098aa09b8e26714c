/// BesideIdeal compares a pipelined step with the time that its schedule allows.
///
/// The ideal is the simulator's makespan for the same schedule, with forward, backward and update
/// times of each stage measured alone on one thread, before and after the steps.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "stagecraft/bench/step/measured_model.h"
#include "stagecraft/bench/step/stage_alone.h"
#include "stagecraft/stagecraft.h"

namespace stagecraft::bench {

/// BesideIdeal holds the result. Units: seconds.
struct BesideIdeal {
  double step = 0.0, best_step = 0.0;
  double ideal_before = 0.0, ideal_after = 0.0;
  std::vector<StageTimes> stages;  ///< measured before the steps
  double tokens_per_second = 0.0;

  [[nodiscard]] double ideal() const { return (ideal_before + ideal_after) / 2; }
};

/// Measures the Llama by 1F1B, with one thread per rank.
[[nodiscard]] BesideIdeal beside_ideal(const Cluster& cluster, const MeasuredModel& model);

[[nodiscard]] std::string text_of(const BesideIdeal& result);
[[nodiscard]] nlohmann::json json_of(const BesideIdeal& result);

}  // namespace stagecraft::bench
