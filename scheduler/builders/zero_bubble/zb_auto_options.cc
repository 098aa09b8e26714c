#include "stagecraft/scheduler/builders/zero_bubble/zb_auto_options.h"

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

/// Sets a duration of every stage, or of each one separately.
void set_times(const BuildRequest& request,
               const std::string& name,
               double Durations::*duration,
               StageCosts& costs) {
  const std::vector<double> given = request.times(name);
  if (given.empty()) {
    return;
  }
  if (given.size() != 1 && std::ssize(given) != request.devices) {
    throw Error(Errc::ScheduleParameter,
                fmt::format("parameter {} needs one time, or one for each of {} devices, got {}",
                            name,
                            request.devices,
                            given.size()));
  }
  costs.each.resize(static_cast<std::size_t>(request.devices), costs.usual);
  for (std::size_t s = 0; s < costs.each.size(); ++s) {
    costs.each[s].*duration = given.size() == 1 ? given.front() : given[s];
  }
}

}  // namespace

ZbAutoOptions zb_auto_options(const BuildRequest& request) {
  ZbAutoOptions options{.costs = request.costs.value_or(Costs{}), .cap = request.numbers("cap")};
  if (request.devices > 0) {
    set_times(request, "f", &Durations::forward, options.costs.stages);
    set_times(request, "i", &Durations::backward_input, options.costs.stages);
    set_times(request, "w", &Durations::backward_weight, options.costs.stages);
  }
  const std::vector<double> transfer = request.times("c");
  if (transfer.size() > 1) {
    throw Error(Errc::UsageArgument, "parameter c needs one time, which every transfer takes");
  }
  if (!transfer.empty()) {
    options.costs.links.usual = {.latency = transfer.front()};
    options.costs.links.each.clear();
  }
  return options;
}

}  // namespace stagecraft
