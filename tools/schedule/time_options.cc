#include "stagecraft/tools/schedule/time_options.h"

#include "stagecraft/tools/train/number.h"

namespace stagecraft::tools {

void add_time_options(CLI::App& app, TimeOptions& options) {
  const auto add = [&](const char* name, double& value, const char* meaning) {
    app.add_option(name, value, meaning)->check(number_from_zero())->type_name("X");
  };
  add("--f", options.durations.forward, "duration of a forward [1]");
  add("--b", options.durations.backward, "duration of a whole backward [2]");
  add("--i", options.durations.backward_input, "duration of its input half [1]");
  add("--w", options.durations.backward_weight, "duration of its weight half [1]");
  add("--latency", options.latency, "duration of a transfer between two devices [0]");
}

CostModel cost_model(const TimeOptions& options) {
  CostModel costs{.usual = options.durations};
  costs.link.latency = options.latency;
  return costs;
}

}  // namespace stagecraft::tools
