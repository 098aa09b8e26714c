/// `stagecraft schedule make`
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/tools/common/command_line.h"
#include "stagecraft/tools/common/files_apart.h"
#include "stagecraft/tools/common/number.h"
#include "stagecraft/tools/common/output.h"
#include "stagecraft/tools/schedule/commands.h"
#include "stagecraft/tools/schedule/input/cost_options.h"
#include "stagecraft/tools/schedule/input/format.h"
#include "stagecraft/tools/schedule/input/input.h"

namespace stagecraft::tools {
namespace {

constexpr const char* kMakeCommand = "stagecraft schedule make";

struct MakeOptions {
  std::string name;
  int devices = 0;
  int microbatches = 0;
  int chunks = 0;
  std::string graph;
  std::vector<std::string> set;
  std::string costs;
  std::string format{schedule_formats().front().name};
  std::string output;
};

void add_options(CLI::App& app, MakeOptions& o) {
  app.add_option("NAME", o.name, "builder; stagecraft schedule list prints all")
      ->required()
      ->type_name("");
  app.add_option("--devices",
                 o.devices,
                 "devices, each a row of the schedule [of a stage graph: one per stage]")
      ->check(whole_number(1, kMaxStages))
      ->type_name("P");
  app.add_option("--microbatches", o.microbatches, "microbatches of one step")
      ->check(whole_number(1, kMaxMicrobatches))
      ->type_name("M");
  app.add_option("--chunks", o.chunks, "stages per device")->check(whole_number(1))->type_name("V");
  app.add_option("--graph", o.graph, "edges between stages, e.g. 0-2,1-2")
      ->type_name("EDGES|@FILE");
  app.add_option("--set", o.set, "parameter of the builder, e.g. k=2; may be repeated")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  app.add_option(
         "--costs", o.costs, "costs.json with the times of tasks and transfers, for zb-auto")
      ->type_name("FILE");
  app.add_option("--format", o.format, "format to write: " + format_names())->type_name("FORMAT");
  app.add_option("-o,--output", o.output, "file to write [standard output]")->type_name("FILE");
}

BuildRequest request_of(const MakeOptions& o, const CLI::App& app, Console& console) {
  const BuilderInfo& builder = find_builder(o.name);
  if (o.microbatches == 0) {
    wrong_usage(kMakeCommand, "expected --microbatches M, found none");
  }
  if (o.graph.empty() && builder.takes_graph) {
    wrong_usage(kMakeCommand,
                fmt::format("{} expects --graph EDGES, e.g. --graph 0-2,1-2, found none", o.name));
  }
  if (o.devices == 0 && !builder.takes_graph) {
    wrong_usage(kMakeCommand, "expected --devices P, found none");
  }
  BuildRequest request{.devices = o.devices, .microbatches = o.microbatches};
  if (app.count("--chunks") > 0) {
    request.chunks = o.chunks;
  }
  if (!o.graph.empty()) {
    request.graph = read_graph(o.graph, console);
  }
  request.set = key_values(kMakeCommand, "--set", o.set);
  if (!o.costs.empty()) {
    request.costs = read_stage_costs(o.costs, console);
  }
  return request;
}

Schedule build(const MakeOptions& o, const BuildRequest& request) {
  try {
    return build_schedule(o.name, request);
  } catch (const Error& error) {
    if (error.code() != Errc::ScheduleParameter) {
      throw;
    }
    throw Error(Errc::ScheduleParameter, fmt::format("V34: {}", error.message()));
  }
}

}  // namespace

ExitCode make_schedule(const Words& words, Console& console) {
  MakeOptions options;
  CLI::App app("Writes the schedule of a builder.", kMakeCommand);
  app.option_defaults()->always_capture_default(false);
  app.footer(
      "Exit status: 0 made; 2 wrong usage, sizes that the builder cannot have, a file that cannot "
      "be read, or output that cannot be written.\n"
      "Example: stagecraft schedule make interleaved --devices 4 --microbatches 8 --chunks 2");
  add_options(app, options);
  if (const auto help = parse_command_line(app, words)) {
    write_output("", *help, console);
    return ExitCode::Good;
  }
  const ScheduleFormat& format = format_of(kMakeCommand, "--format", options.format);
  check_all_apart({{"--costs", options.costs},
                   {"--graph", options.graph.starts_with('@') ? options.graph.substr(1) : ""}},
                  {{"--output", options.output}});
  const BuildRequest request = request_of(options, app, console);
  const Schedule schedule = build(options, request);
  if (request.costs) {
    note_misfit(options.costs, *request.costs, schedule, schedule.stage_graph(), console);
  }
  write_output(options.output, write_schedule(schedule, schedule.stage_graph(), format), console);
  return ExitCode::Good;
}

}  // namespace stagecraft::tools
