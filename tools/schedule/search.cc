/// `stagecraft schedule search`
#include <algorithm>
#include <chrono>
#include <ostream>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/scheduler/formats/registry.h"
#include "stagecraft/scheduler/search/schedule_search.h"
#include "stagecraft/tools/common/command_json.h"
#include "stagecraft/tools/common/command_line.h"
#include "stagecraft/tools/common/files_apart.h"
#include "stagecraft/tools/common/number.h"
#include "stagecraft/tools/common/number_text.h"
#include "stagecraft/tools/common/output.h"
#include "stagecraft/tools/common/status_line.h"
#include "stagecraft/tools/schedule/commands.h"
#include "stagecraft/tools/schedule/input/cost_options.h"

namespace stagecraft::tools {
namespace {

constexpr const char* kSearchCommand = "stagecraft schedule search";

struct SearchOptions {
  SearchRequest request;
  std::string placement = "loop";
  CostOptions costs;
  double seconds = 30;
  std::string output;
  bool json = false;
};

void add_search_options(CLI::App& app, SearchOptions& o) {
  SearchRequest& r = o.request;
  app.add_option("--devices", r.devices, "devices, each a row of the schedule")
      ->required()
      ->check(whole_number(1))
      ->type_name("P");
  app.add_option("--microbatches", r.microbatches, "microbatches of one step")
      ->required()
      ->check(whole_number(1))
      ->type_name("M");
  app.add_option("--cap", r.cap, "most in flight on each device, in stages x microbatches")
      ->required()
      ->check(whole_number(1))
      ->type_name("N");
  app.add_option("--chunks", r.chunks, "stages per device [1]")
      ->check(whole_number(1))
      ->type_name("V");
  app.add_option("--placement",
                 o.placement,
                 "devices of chunks: loop (0,1,0,1), wave (0,1,1,0), or replicas, two copies "
                 "of the model [loop]")
      ->type_name("loop|wave|replicas");
  app.add_flag("--split", r.split, "split backwards into halves, I and W");
  add_cost_options(app, o.costs);
  app.add_option("--seconds", o.seconds, "seconds after which the search ends [30]")
      ->check(positive_number())
      ->type_name("SECONDS");
  app.add_option("-o,--output", o.output, "file to write [standard output]")->type_name("FILE");
  app.add_flag("--json", o.json, "print one JSON object, which contains the schedule");
}

StagePlacement placement_of(const std::string& word) {
  if (word == "loop") {
    return StagePlacement::Loop;
  }
  if (word == "wave") {
    return StagePlacement::Wave;
  }
  if (word == "replicas") {
    return StagePlacement::Replicas;
  }
  wrong_usage(
      kSearchCommand,
      fmt::format("--placement expects loop, wave or replicas, found '{}'", word.substr(0, 40)));
}

/// Returns the distance to the bound, as a share of the makespan.
double gap_of(const SearchResult& result) {
  return result.optimal ? 0 : (result.makespan - result.bound) / result.makespan;
}

std::string verdict_text(const SearchResult& result, const ScheduleFigures& f, double seconds) {
  const std::string found =
      fmt::format("makespan {}, bubble {}, in flight {}, {}",
                  number_text(f.makespan),
                  percent_text(f.bubble),
                  f.peak_in_flight,
                  result.builder.empty() ? std::string("no builder is within the cap")
                                         : fmt::format("the best builder, {}, has {}",
                                                       result.builder,
                                                       number_text(result.builder_makespan)));
  if (result.optimal) {
    return fmt::format("optimum: {}\n", found);
  }
  return fmt::format(
      "best found in {} s: {}\nbound {}, gap {}; --seconds gives the search more time\n",
      number_text(seconds),
      found,
      number_text(result.bound),
      percent_text(gap_of(result)));
}

std::string as_json(const SearchResult& result, const ScheduleFigures& f, const std::string& text) {
  nlohmann::ordered_json answer{{"makespan", number_json(f.makespan)},
                                {"bound", number_json(result.bound)},
                                {"gap", number_json(gap_of(result))},
                                {"optimal", result.optimal},
                                {"bubble_fraction", number_json(f.bubble)},
                                {"peak_in_flight", f.peak_in_flight},
                                {"builder", nullptr},
                                {"states", result.states},
                                {"schedule", text}};
  if (!result.builder.empty()) {
    answer["builder"] = {{"name", result.builder},
                         {"makespan", number_json(result.builder_makespan)}};
  }
  return command_json("schedule search", answer);
}

/// Returns the state of the search, for a waiting user.
std::string progress_text(const SearchProgress& progress, double seconds) {
  return fmt::format("searching: best {}, bound {}, {:.0f} s",
                     number_text(progress.makespan),
                     number_text(progress.bound),
                     seconds);
}

/// Searches for as long as the options say; on a terminal, shows the progress.
SearchResult searched(const SearchOptions& options, Console& console) {
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;
  constexpr Seconds kBetweenLines(0.1);
  StatusLine line(console, options.json);
  const Clock::time_point begin = Clock::now();
  Seconds next(0);
  SearchRequest request = options.request;
  request.keep_going = [&](const SearchProgress& progress) {
    const Seconds now = Clock::now() - begin;
    if (now >= next) {
      line.say(progress_text(progress, now.count()));
      next = now + kBetweenLines;
    }
    return now.count() < options.seconds;
  };
  return search_schedule(request);
}

}  // namespace

ExitCode search_schedules(const Words& words, Console& console) {
  SearchOptions options;
  CLI::App app("Finds the schedule of least makespan with at most N in flight on each device.",
               kSearchCommand);
  app.option_defaults()->always_capture_default(false);
  app.footer(
      "Up to 4 devices, 6 microbatches and 2 chunks, search usually proves the optimum within "
      "seconds. Beyond that it returns the best schedule that it found, and a lower bound for all "
      "schedules. Durations and times are those of one device's share of the model, as in compare. "
      "Replicas have one stage each on a device and half of the microbatches, as in chimera and "
      "dualpipe.\n"
      "Exit status: 0 found, the optimum or not; 2 wrong usage, a file that cannot be read, or "
      "output that cannot be written.\n"
      "Example: stagecraft schedule search --devices 4 --microbatches 6 --cap 3 --split");
  add_search_options(app, options);
  if (const auto help = parse_command_line(app, words)) {
    write_output("", *help, console);
    return ExitCode::Good;
  }
  check_all_apart({{"--costs", options.costs.file}}, {{"--output", options.output}});
  options.request.placement = placement_of(options.placement);
  options.request.costs = costs_of(app, options.costs, console);
  const SearchResult result = searched(options, console);
  const StageGraph graph = result.schedule.stage_graph();
  const ScheduleFigures figures = figures_of(result.schedule, graph, options.request.costs);
  const std::string text = write_schedule(result.schedule, graph, schedule_formats().front());
  if (!options.output.empty() || !options.json) {
    write_output(options.output, text, console);
  }
  if (options.json) {
    write_output("", as_json(result, figures, text), console);
  } else {
    console.err << verdict_text(result, figures, options.seconds);
  }
  return ExitCode::Good;
}

}  // namespace stagecraft::tools
