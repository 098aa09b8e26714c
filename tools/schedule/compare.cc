/// `stagecraft schedule compare`
#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/base/count_text.h"
#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/tools/common/command_json.h"
#include "stagecraft/tools/common/command_line.h"
#include "stagecraft/tools/common/files_apart.h"
#include "stagecraft/tools/common/number.h"
#include "stagecraft/tools/common/output.h"
#include "stagecraft/tools/common/table.h"
#include "stagecraft/tools/schedule/commands.h"
#include "stagecraft/tools/schedule/input/candidates.h"
#include "stagecraft/tools/schedule/input/cost_options.h"
#include "stagecraft/tools/schedule/input/input.h"
#include "stagecraft/tools/schedule/input/named_schedule.h"
#include "stagecraft/tools/schedule/report/compare_page.h"
#include "stagecraft/tools/schedule/report/figure_columns.h"
#include "stagecraft/tools/schedule/report/verdict.h"

namespace stagecraft::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kCompareCommand = "stagecraft schedule compare";

struct CompareOptions {
  std::vector<std::string> words;
  int devices = 0;
  int microbatches = 0;
  int chunks = 0;
  CostOptions costs;
  bool json = false;
  bool csv = false;
  std::string html;
};

void add_options(CLI::App& app, CompareOptions& o) {
  app.add_option("NAMES", o.words, "builders or files; all names every builder")
      ->required()
      ->type_name("");
  app.add_option(
         "--devices", o.devices, "devices, each a row of the schedule [those of the first file]")
      ->check(whole_number(1))
      ->type_name("P");
  app.add_option(
         "--microbatches", o.microbatches, "microbatches of one step [those of the first file]")
      ->check(whole_number(1))
      ->type_name("M");
  app.add_option("--chunks", o.chunks, "stages per device, for builders that leave it open")
      ->check(whole_number(1))
      ->type_name("V");
  add_cost_options(app, o.costs);
  app.add_option("--html", o.html, "write a page for a browser")->type_name("FILE");
  app.add_flag("--csv", o.csv, "print CSV");
  app.add_flag("--json", o.json, "print one JSON object");
}

std::string title_of(const CompareOptions& o) {
  std::string title = "Schedules compared";
  title += o.devices > 0 ? fmt::format(", {}", count_text(o.devices, "device")) : "";
  return title + (o.microbatches > 0 ? fmt::format(", microbatches: {}", o.microbatches) : "");
}

/// Returns whether a word names a file: it exists, and no builder has that name.
bool is_file(const std::string& word) {
  const auto named = std::ranges::find(builders(), word, &BuilderInfo::name);
  return word == "-" ||
         (word != "all" && named == builders().end() && std::filesystem::exists(word));
}

Candidate file_candidate(const ScheduleFile& file, const std::string& word, const CommonJob& job) {
  Candidate candidate{.name = word};
  const std::size_t rows = file.schedule.rows().size();
  if (rows != static_cast<std::size_t>(job.devices) ||
      file.schedule.microbatches() != job.microbatches) {
    candidate.reason = fmt::format(
        "has {} x {} devices and microbatches, expected {} x {}; only schedules of the same work "
        "can be compared",
        rows,
        file.schedule.microbatches(),
        job.devices,
        job.microbatches);
    return candidate;
  }
  if (const auto violations = violations_of(file); !violations.empty()) {
    candidate.reason = fmt::format("{}, the first: {}; stagecraft schedule check shows all",
                                   count_text(violations.size(), "violation"),
                                   to_string(violations.front()));
    return candidate;
  }
  candidate.figures = figures_of(file.schedule, file.graph, job.costs);
  return candidate;
}

std::vector<Candidate> candidates_of(const CompareOptions& o, Costs costs, Console& console) {
  CommonJob job{.devices = o.devices, .microbatches = o.microbatches, .costs = std::move(costs)};
  if (o.chunks > 0) {
    job.chunks = o.chunks;
  }
  std::vector<Candidate> candidates;
  for (const std::string& word : o.words) {
    if (is_file(word)) {
      const ScheduleFile file = read_schedule(word, {}, console);
      if (job.devices == 0) {
        job.devices = static_cast<int>(file.schedule.rows().size());
      }
      if (job.microbatches == 0) {
        job.microbatches = file.schedule.microbatches();
      }
      candidates.push_back(file_candidate(file, word, job));
      continue;
    }
    if (word != "all" && builder_named(word) == nullptr) {
      require_schedule_file(kCompareCommand, "NAMES", word);
    }
    const std::vector<const BuilderInfo*> named = named_builders({word});
    if (job.devices == 0 || job.microbatches == 0) {
      wrong_usage(kCompareCommand,
                  fmt::format("expected {} to make '{}', found none",
                              job.devices == 0 ? "--devices P" : "--microbatches M",
                              word));
    }
    for (const BuilderInfo* builder : named) {
      candidates.push_back(built_candidate(*builder, job));
    }
  }
  return candidates;
}

std::string reasons_text(const std::vector<Candidate>& candidates) {
  std::string text;
  for (const Candidate& c : candidates) {
    if (!c.figures) {
      text +=
          fmt::format("{}{}: {}\n", text.empty() ? "\nnot compared\n  " : "  ", c.name, c.reason);
    }
  }
  return text;
}

std::string as_text(const std::vector<Candidate>& candidates, bool bytes) {
  std::vector<std::string> head{"schedule"};
  for (const FigureColumn& column : figure_columns(bytes)) {
    head.emplace_back(column.name);
  }
  std::vector<std::vector<std::string>> lines;
  for (const Candidate& c : candidates) {
    if (c.figures) {
      lines.push_back(figure_texts(*c.figures, bytes));
      lines.back().insert(lines.back().begin(), c.name);
    }
  }
  const std::string table = lines.empty() ? "" : table_text(head, lines);
  return table + reasons_text(candidates);
}

std::string as_json(const std::vector<Candidate>& candidates, bool bytes) {
  Json list = Json::array();
  for (const Candidate& c : candidates) {
    Json line{{"schedule", c.name}};
    if (!c.figures) {
      line["reason"] = c.reason;
    } else {
      line.update(figures_json(*c.figures, bytes));
    }
    list.push_back(line);
  }
  return command_json("schedule compare", {{"schedules", list}});
}

/// Returns the name as one CSV field: file names may contain anything.
std::string in_csv(std::string name) {
  if (name.find_first_of(",\"\n\r") == std::string::npos) {
    return name;
  }
  for (std::size_t at = 0; (at = name.find('"', at)) != std::string::npos; at += 2) {
    name.insert(at, 1, '"');
  }
  return '"' + name + '"';
}

std::string as_csv(const std::vector<Candidate>& candidates) {
  std::string text = "schedule";
  for (const FigureColumn& column : figure_columns(true)) {
    text += fmt::format(",{}", column.key);
  }
  for (const Candidate& c : candidates) {
    text += '\n' + in_csv(c.name);
    for (const FigureColumn& column : figure_columns(true)) {
      text += c.figures ? fmt::format(",{}", column.value(*c.figures)) : ",";
    }
  }
  return text + '\n';
}

}  // namespace

ExitCode compare_schedules(const Words& words, Console& console) {
  CompareOptions options;
  CLI::App app("Compares the figures of schedules that do the same work.", kCompareCommand);
  app.option_defaults()->always_capture_default(false);
  app.footer(
      "Durations and times are those of one device's share of the model, for any number of stages "
      "in the share. A costs.json has one stage per device, or lists the stages. In flight counts "
      "stages x microbatches; memory counts the same in shares. A schedule that a builder cannot "
      "make is listed with the reason.\n"
      "Exit status: 0 compared; 1 nothing could be compared; 2 wrong usage, a file that cannot be "
      "read, or output that cannot be written.\n"
      "Example: stagecraft schedule compare all --devices 4 --microbatches 8");
  add_options(app, options);
  if (const auto help = parse_command_line(app, words)) {
    write_output("", *help, console);
    return ExitCode::Good;
  }
  if (static_cast<int>(options.json) + static_cast<int>(options.csv) +
          static_cast<int>(!options.html.empty()) >
      1) {
    wrong_usage(kCompareCommand, "expected at most one of --json, --csv and --html, found several");
  }
  std::vector<NamedFile> inputs{{"--costs", options.costs.file}};
  for (const std::string& word : options.words) {
    if (is_file(word)) {
      inputs.emplace_back("NAMES", word);
    }
  }
  check_all_apart(std::move(inputs), {{"--html", options.html}});
  const std::vector<Candidate> candidates =
      candidates_of(options, costs_of(app, options.costs, console), console);
  const bool bytes = std::ranges::any_of(
      candidates, [](const Candidate& c) { return c.figures && c.figures->peak_bytes > 0; });
  write_output(options.html == "-" ? "" : options.html,
               options.json            ? as_json(candidates, bytes)
               : options.csv           ? as_csv(candidates)
               : !options.html.empty() ? compare_page(title_of(options), candidates, bytes)
                                       : as_text(candidates, bytes),
               console);
  if (options.csv) {
    console.err << reasons_text(candidates);
  }
  const bool any =
      std::ranges::any_of(candidates, [](const Candidate& c) { return c.figures.has_value(); });
  return any ? ExitCode::Good : ExitCode::Failed;
}

}  // namespace stagecraft::tools
