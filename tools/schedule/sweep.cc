/// `stagecraft schedule sweep`
#include <algorithm>
#include <charconv>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "stagecraft/tools/common/command_json.h"
#include "stagecraft/tools/common/command_line.h"
#include "stagecraft/tools/common/files_apart.h"
#include "stagecraft/tools/common/output.h"
#include "stagecraft/tools/common/table.h"
#include "stagecraft/tools/schedule/commands.h"
#include "stagecraft/tools/schedule/input/candidates.h"
#include "stagecraft/tools/schedule/input/cost_options.h"
#include "stagecraft/tools/schedule/report/figure_columns.h"
#include "stagecraft/tools/schedule/report/sweep_plot.h"

namespace stagecraft::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSweepCommand = "stagecraft schedule sweep";

struct SweepOptions {
  std::vector<std::string> names;
  std::string devices;
  std::string microbatches;
  std::string chunks;
  CostOptions costs;
  bool json = false;
  bool csv = false;
  std::string svg;
};

void add_sweep_options(CLI::App& app, SweepOptions& o) {
  app.add_option("NAMES", o.names, "builders, or all")->required()->type_name("");
  app.add_option("--devices", o.devices, "devices, each a row of the schedule, e.g. 4,8")
      ->required()
      ->type_name("P,...");
  app.add_option("--microbatches", o.microbatches, "microbatches of one step, e.g. 8,16,32")
      ->required()
      ->type_name("M,...");
  app.add_option("--chunks", o.chunks, "stages per device, for builders that leave it open [2]")
      ->type_name("V,...");
  add_cost_options(app, o.costs);
  app.add_option("--svg", o.svg, "also write a plot of bubble against microbatches")
      ->type_name("FILE");
  app.add_flag("--csv", o.csv, "print CSV");
  app.add_flag("--json", o.json, "print one JSON object");
}

/// Returns the numbers of an option, ascending, each once.
std::vector<int> numbers_of(const std::string& option, const std::string& text) {
  std::vector<int> numbers;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at <= end;) {
    int number = 0;
    const auto [stop, error] = std::from_chars(at, end, number);
    if (error != std::errc() || number < 1 || (stop != end && *stop != ',')) {
      wrong_usage(kSweepCommand,
                  fmt::format("{} expects whole numbers from 1 on, separated by commas, found '{}'",
                              option,
                              text.substr(0, 40)));
    }
    numbers.push_back(number);
    at = stop + 1;
  }
  std::ranges::sort(numbers);
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

/// One job of one builder.
struct Point {
  int devices = 0;
  int microbatches = 0;
  std::optional<int> chunks;  ///< for a builder that leaves them open
  Candidate candidate;
};

/// Returns the points; all microbatches of one builder, devices and chunks are consecutive.
std::vector<Point> points_of(const SweepOptions& o, const Costs& costs) {
  const std::vector<int> devices = numbers_of("--devices", o.devices);
  const std::vector<int> microbatches = numbers_of("--microbatches", o.microbatches);
  std::vector<std::optional<int>> open;
  for (const int chunks : numbers_of("--chunks", o.chunks.empty() ? "2" : o.chunks)) {
    open.emplace_back(chunks);
  }
  std::vector<Point> points;
  for (const BuilderInfo* builder : named_builders(o.names)) {
    const bool is_open = builder->chunks == ChunkRule::Open;
    for (const int p : devices) {
      for (const auto& v : is_open ? open : std::vector<std::optional<int>>{std::nullopt}) {
        for (const int m : microbatches) {
          const CommonJob job{.devices = p, .microbatches = m, .chunks = v, .costs = costs};
          points.push_back({p, m, v, built_candidate(*builder, job)});
        }
      }
    }
  }
  return points;
}

/// Returns how many jobs each builder refused, and the first reason.
std::string reasons_text(const std::vector<Point>& points) {
  std::vector<std::pair<const Candidate*, std::size_t>> refused;
  for (const Point& point : points) {
    if (point.candidate.figures) {
      continue;
    }
    if (refused.empty() || refused.back().first->name != point.candidate.name) {
      refused.emplace_back(&point.candidate, 0);
    }
    ++refused.back().second;
  }
  std::string text = refused.empty() ? "" : "\nnot built\n";
  for (const auto& [candidate, count] : refused) {
    text += fmt::format("  {}, {}: {}\n",
                        candidate->name,
                        count == 1 ? "once" : fmt::format("{} times, the first", count),
                        candidate->reason);
  }
  return text;
}

/// Returns the columns after the name: the point's own on both sides of the stages.
std::vector<std::string> around_stages(std::string devices,
                                       std::string microbatches,
                                       std::vector<std::string> figures) {
  figures.insert(figures.begin() + 1, std::move(microbatches));
  figures.insert(figures.begin(), std::move(devices));
  return figures;
}

std::string as_text(const std::vector<Point>& points, bool bytes) {
  std::vector<std::string> names;
  for (const FigureColumn& column : figure_columns(bytes)) {
    names.emplace_back(column.name);
  }
  std::vector<std::string> head = around_stages("devices", "microbatches", std::move(names));
  head.insert(head.begin(), "schedule");
  std::vector<std::vector<std::string>> lines;
  for (const Point& point : points) {
    if (const auto& f = point.candidate.figures) {
      lines.push_back(around_stages(std::to_string(point.devices),
                                    std::to_string(point.microbatches),
                                    figure_texts(*f, bytes)));
      lines.back().insert(lines.back().begin(), point.candidate.name);
    }
  }
  return lines.empty() ? "" : table_text(head, lines);
}

std::string as_csv(const std::vector<Point>& points) {
  std::vector<std::string> keys;
  for (const FigureColumn& column : figure_columns(true)) {
    keys.emplace_back(column.key);
  }
  std::string text = fmt::format(
      "schedule,{}\n", fmt::join(around_stages("devices", "microbatches", std::move(keys)), ","));
  for (const Point& point : points) {
    if (const auto& f = point.candidate.figures) {
      std::vector<std::string> values;
      for (const FigureColumn& column : figure_columns(true)) {
        values.push_back(fmt::format("{}", column.value(*f)));
      }
      text += fmt::format("{},{}\n",
                          point.candidate.name,
                          fmt::join(around_stages(std::to_string(point.devices),
                                                  std::to_string(point.microbatches),
                                                  std::move(values)),
                                    ","));
    }
  }
  return text;
}

/// Returns the lines of compare's JSON, each with the job of its point.
std::string as_json(const std::vector<Point>& points, bool bytes) {
  Json schedules = Json::array();
  for (const Point& point : points) {
    Json line{{"schedule", point.candidate.name},
              {"devices", point.devices},
              {"microbatches", point.microbatches}};
    if (point.chunks) {
      line["chunks"] = *point.chunks;
    }
    if (const auto& f = point.candidate.figures) {
      line.update(figures_json(*f, bytes));
    } else {
      line["reason"] = point.candidate.reason;
    }
    schedules.push_back(std::move(line));
  }
  return command_json("schedule sweep", {{"schedules", std::move(schedules)}});
}

std::vector<PlotLine> lines_of(const std::vector<Point>& points) {
  std::vector<PlotLine> lines;
  for (const Point& point : points) {
    if (const auto& f = point.candidate.figures) {
      std::string name = fmt::format("{}, P = {}", point.candidate.name, point.devices);
      if (point.chunks) {
        name += fmt::format(", V = {}", *point.chunks);
      }
      if (lines.empty() || lines.back().name != name) {
        lines.push_back({std::move(name), {}});
      }
      lines.back().points.emplace_back(point.microbatches, f->bubble);
    }
  }
  return lines;
}

}  // namespace

ExitCode sweep_schedules(const Words& words, Console& console) {
  SweepOptions options;
  CLI::App app("Tabulates the figures of builders over devices, microbatches and chunks.",
               kSweepCommand);
  app.option_defaults()->always_capture_default(false);
  app.footer(
      "Durations and figures are those of compare.\n"
      "Exit status: 0 built; 1 nothing could be built; 2 wrong usage, a file that cannot be read, "
      "or output that cannot be written.\n"
      "Example: stagecraft schedule sweep 1f1b zb-h1 --devices 4,8 --microbatches 8,16,32 --svg "
      "plot.svg");
  add_sweep_options(app, options);
  if (const auto help = parse_command_line(app, words)) {
    write_output("", *help, console);
    return ExitCode::Good;
  }
  if (options.json && options.csv) {
    wrong_usage(kSweepCommand, "expected at most one of --json and --csv, found both");
  }
  if (options.svg == "-" && (options.json || options.csv)) {
    wrong_usage(
        kSweepCommand,
        fmt::format("--svg - and {} both print to standard output; leave one of the two out",
                    options.json ? "--json" : "--csv"));
  }
  check_all_apart({{"--costs", options.costs.file}}, {{"--svg", options.svg}});
  const std::vector<Point> points = points_of(options, costs_of(app, options.costs, console));
  const bool any =
      std::ranges::any_of(points, [](const Point& p) { return p.candidate.figures.has_value(); });
  const bool bytes = std::ranges::any_of(points, [](const Point& p) {
    return p.candidate.figures && p.candidate.figures->peak_bytes > 0;
  });
  if (!options.svg.empty() && any) {
    write_output(options.svg, plot_svg(lines_of(points)), console);
  }
  if (options.svg != "-") {
    write_output("",
                 options.json  ? as_json(points, bytes)
                 : options.csv ? as_csv(points)
                               : as_text(points, bytes),
                 console);
  }
  if (!options.json) {
    console.err << reasons_text(points);
  }
  return any ? ExitCode::Good : ExitCode::Failed;
}

}  // namespace stagecraft::tools
