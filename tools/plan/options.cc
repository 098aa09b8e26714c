#include "stagecraft/tools/plan/options.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "stagecraft/base/byte_count.h"
#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/formats/event_orders.h"
#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/planners/registry.h"
#include "stagecraft/scheduler/planners/what_if.h"
#include "stagecraft/tools/common/command_line.h"
#include "stagecraft/tools/common/files_apart.h"
#include "stagecraft/tools/common/number.h"
#include "stagecraft/tools/plan/operator_constraints.h"
#include "stagecraft/tools/schedule/input/cost_options.h"
#include "stagecraft/tools/schedule/input/input.h"
#include "stagecraft/tools/schedule/input/named_schedule.h"

namespace stagecraft::tools {
namespace {

constexpr const char* kPlanCommand = "stagecraft plan";
constexpr int kUsualMicrobatches = 8;
constexpr int kMostProcessors = 1'000'000;
constexpr int kMostListed = 1000;

WhatIf link_change(const std::string& word, std::string_view text) {
  const auto refuse = [&] {
    wrong_usage(kPlanCommand,
                fmt::format("--what-if link expects two devices and a factor of the speed, e.g. "
                            "link=0-1:10x or link=0-1:0.1x, found '{}'",
                            word));
  };
  WhatIf change{.kind = WhatIf::Kind::Link};
  const auto from = leading_number(text);
  if (!from || !from->second.starts_with('-')) {
    refuse();
  }
  const auto to = leading_number(from->second.substr(1));
  if (!to || !to->second.starts_with(':')) {
    refuse();
  }
  const auto factor = leading_number(to->second.substr(1));
  if (!factor || factor->second != "x" || factor->first <= 0 || from->first < 0 || to->first < 0 ||
      from->first != std::floor(from->first) || to->first != std::floor(to->first)) {
    refuse();
  }
  change.from = static_cast<int>(from->first);
  change.to = static_cast<int>(to->first);
  change.factor = factor->first;
  return change;
}

WhatIf change_of(const std::string& word, int devices) {
  constexpr std::string_view kMemory = "memory=";
  constexpr std::string_view kLink = "link=";
  if (word.starts_with(kMemory)) {
    const auto bytes = parse_bytes(std::string_view(word).substr(kMemory.size()));
    if (!bytes) {
      wrong_usage(kPlanCommand,
                  fmt::format("--what-if memory= expects {}, found '{}'", kBytesForm, word));
    }
    return {.kind = WhatIf::Kind::Memory, .bytes = static_cast<double>(*bytes)};
  }
  if (!word.starts_with(kLink)) {
    wrong_usage(kPlanCommand,
                fmt::format("--what-if expects link=0-1:10x or memory=4G, found '{}'", word));
  }
  const WhatIf change = link_change(word, std::string_view(word).substr(kLink.size()));
  if (std::max(change.from, change.to) >= devices || change.from == change.to) {
    wrong_usage(
        kPlanCommand,
        fmt::format("--what-if {} expects two different devices from 0 to {}", word, devices - 1));
  }
  return change;
}

/// Returns the event orders in a file of --barriers.
std::vector<EventOrder> orders_of(const std::string& path, Console& console) {
  const std::string text = read_source(path, "--barriers", console);
  try {
    return parse_event_orders(text);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("--barriers {}: {}", source_name(path), error.message()));
  }
}

/// Errors: UsageFile if an output would overwrite an input or another output.
void check_files(const PlanOptions& options) {
  std::vector<NamedFile> inputs{{"COSTS", options.costs}};
  if (options.schedule && builder_named(*options.schedule) == nullptr) {
    inputs.emplace_back("--schedule", *options.schedule);
  }
  if (options.barriers && options.barriers != "phases") {
    inputs.emplace_back("--barriers", *options.barriers);
  }
  check_all_apart(std::move(inputs),
                  {{"--schedule-out", options.schedule_out.value_or("")},
                   {"--cut-out", options.cut_out.value_or("")},
                   {"--html", options.html.value_or("")}});
}

std::string planner_names() {
  std::string names;
  for (const PlannerInfo& planner : planners()) {
    names += fmt::format("{}, ", planner.name);
  }
  return names + "or auto";
}

}  // namespace

void add_plan_options(CLI::App& app, PlanOptions& options) {
  app.add_option("COSTS", options.costs, "costs.json of `stagecraft profile`; - is standard input")
      ->required();
  app.add_option("--devices", options.devices, "number of devices")
      ->required()
      ->type_name("N")
      ->check(whole_number(1, kMaxRanks));
  app.add_option("--processors",
                 options.processors,
                 "processors that all devices share, as ranks of one machine [each device has "
                 "its own]")
      ->type_name("N")
      ->check(whole_number(1, kMostProcessors));
  app.add_option("--memory", options.memory, "memory of every device, e.g. 4G [no limit]")
      ->type_name("BYTES")
      ->transform(byte_number());
  app.add_option("--batch",
                 options.batch,
                 "samples of a step [those of the profiled data, or 8 microbatches]")
      ->type_name("N")
      ->check(whole_number(1));
  app.add_option("--microbatch-sizes",
                 options.microbatch_sizes,
                 "samples of a microbatch to choose from, e.g. 1,2,4 [the measured sizes]")
      ->type_name("N,...")
      ->delimiter(',')
      ->check(whole_number(1));
  app.add_flag("--stage-sizes",
               options.stage_sizes,
               "let stages take microbatches of different sizes (graphpipe)");
  app.add_option("--planner", options.planner, "planner to ask: " + planner_names() + " [auto]")
      ->type_name("NAME");
  app.add_option("--schedule",
                 options.schedule,
                 "search only for the best cut for this schedule, a name or file")
      ->type_name("NAME|FILE");
  app.add_option(
         "--barriers",
         options.barriers,
         "phases: alternate computing and communicating on all devices; FILE: orders, one per "
         "line, e.g. 0F0>1 < 0F1")
      ->type_name("phases|FILE");
  app.add_option("--channels",
                 options.channels,
                 "shared: one half-duplex channel between two devices; free: transfers never wait "
                 "[free]")
      ->type_name("free|shared");
  app.add_option("--what-if",
                 options.what_if,
                 "plan for a changed link or memory, and compare: link=0-1:10x (ten times as fast) "
                 "or memory=4G; may be repeated")
      ->type_name("CHANGE");
  app.add_option("--together",
                 options.together,
                 "keep operators A to B, by their numbers, in one stage; may be repeated")
      ->type_name("A-B");
  app.add_option("--on-device",
                 options.on_device,
                 "like --together, and run that stage on this device, e.g. 0:0-5")
      ->type_name("DEVICE:A-B");
  app.add_option("--max-stages", options.max_stages, "most stages that a plan may have")
      ->type_name("N")
      ->check(whole_number(1));
  app.add_option("--time-limit",
                 options.time_limit,
                 "seconds after which the search ends with the best plan so far [none]")
      ->type_name("SECONDS")
      ->check(positive_number());
  app.add_option("--top", options.top, "number of plans in the list [5]")
      ->type_name("N")
      ->check(whole_number(1, kMostListed));
  app.add_flag("--why", options.why, "say what would have to change for other plans to win");
  app.add_option("--schedule-out", options.schedule_out, "write the schedule, for train --schedule")
      ->type_name("FILE");
  app.add_option("--cut-out", options.cut_out, "write the cut, for train --cut @FILE")
      ->type_name("FILE");
  app.add_option("--html", options.html, "write a page for a browser")->type_name("FILE");
  app.add_flag("--json", options.json, "print one JSON object");
}

PlanRequest plan_request(const PlanOptions& options, Console& console) {
  check_files(options);
  PlanRequest request;
  request.costs = read_costs(options.costs, console, "COSTS");
  request.devices = options.devices;
  request.may_share = true;
  request.costs.device.processors = options.processors.value_or(request.costs.device.processors);
  request.batch = options.batch.value_or(
      request.costs.batch > 0 ? request.costs.batch : kUsualMicrobatches * request.costs.samples);
  request.microbatch_sizes = options.microbatch_sizes;
  request.stage_sizes = options.stage_sizes;
  if (options.memory) {
    request.memory = static_cast<double>(*options.memory);
  }
  if (options.schedule) {
    if (builder_named(*options.schedule) != nullptr) {
      request.builder = *options.schedule;
    } else {
      require_schedule_file(kPlanCommand, "--schedule", *options.schedule);
      request.schedule = read_schedule(*options.schedule, {}, console).schedule;
    }
  }
  if (options.barriers == "phases") {
    request.phases = true;
  } else if (options.barriers) {
    request.orders = orders_of(*options.barriers, console);
  }
  if (options.channels != "shared" && options.channels != "free") {
    wrong_usage(kPlanCommand,
                fmt::format("--channels expects free or shared, found '{}'", options.channels));
  }
  request.shared_channels = options.channels == "shared";
  constrain_operators(options.together, options.on_device, request);
  request.most_stages = options.max_stages.value_or(0);
  return request;
}

PlanRequest with_changes(PlanRequest request, const PlanOptions& options) {
  for (const std::string& word : options.what_if) {
    request = with(std::move(request), change_of(word, options.devices));
  }
  return request;
}

}  // namespace stagecraft::tools
