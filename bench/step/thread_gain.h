/// ThreadGain measures the gain of a second thread inside the operators, on one rank and in a plain
/// training loop.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "stagecraft/bench/step/measured_model.h"

namespace stagecraft::bench {

/// ThreadGain holds the result. Units: seconds a step.
struct ThreadGain {
  struct Steps {
    double one_thread = 0.0, two_threads = 0.0;
  };
  Steps trainer, plain_loop;
};

/// Measures one rank, so that a second thread has a processor to itself. Requires: the model is one
/// stage.
[[nodiscard]] ThreadGain thread_gain(const MeasuredModel& model);

[[nodiscard]] std::string text_of(const ThreadGain& gain);
[[nodiscard]] nlohmann::json json_of(const ThreadGain& gain);

}  // namespace stagecraft::bench
