#include "stagecraft/tools/schedule/input/input.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/formats/parts/cell_text.h"
#include "stagecraft/scheduler/formats/text.h"
#include "stagecraft/scheduler/notes/column_order.h"
#include "stagecraft/scheduler/rules/repair/wrong_graph.h"
#include "stagecraft/scheduler/strategy/strategy_text.h"
#include "stagecraft/tools/schedule/input/format.h"

namespace stagecraft::tools {
namespace {

[[noreturn]] void unreadable(const std::string& path,
                             const std::string& what,
                             const std::string& found) {
  throw Error(Errc::UsageFile,
              fmt::format("{} expects a readable file, found {} at '{}'", what, found, path));
}

/// Reads one byte more than parsers take, so that they see that the input is too long.
std::string read_stream(std::istream& stream) {
  std::string bytes;
  std::array<char, 65536> buffer{};
  while (bytes.size() <= formats::kMaxBytes &&
         (stream.read(buffer.data(), buffer.size()), stream.gcount() > 0)) {
    bytes.append(buffer.data(), static_cast<std::size_t>(stream.gcount()));
  }
  return bytes;
}

std::string read_file(const std::string& path, const std::string& what) {
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  if (!std::filesystem::exists(status)) {
    unreadable(path, what, "no file");
  }
  if (std::filesystem::is_directory(status)) {
    unreadable(path, what, "a directory");
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    unreadable(path, what, "a file that cannot be opened");
  }
  std::string bytes = read_stream(file);
  if (file.bad()) {
    unreadable(path, what, "a file that cannot be read to its end");
  }
  return bytes;
}

Schedule with_graph(const Schedule& schedule, StageGraph graph) {
  Schedule::Headers headers = schedule.headers();
  headers.graph = std::move(graph);
  return Schedule(schedule.form(), schedule.rows(), std::move(headers));
}

/// Returns the edges of the option over the stages of both, with the file's replicas, frozen stages
/// and sizes of microbatches.
StageGraph over_stages_of(const Schedule& schedule, const StageGraph& option) {
  StageGraph graph =
      StageGraph::from_edges(std::max(schedule.stages(), option.size()), option.edges());
  if (schedule.headers().graph) {
    graph.set_replica_pairs(schedule.headers().graph->replica_pairs());
    graph.freeze(schedule.headers().graph->frozen());
    if (std::vector<int> sizes = schedule.headers().graph->microbatch_sizes(); !sizes.empty()) {
      sizes.resize(static_cast<std::size_t>(graph.size()), 1);
      graph.set_microbatch_sizes(sizes);
    }
  }
  return graph;
}

/// Reads the rows as lists if their columns are not times, and prints a note.
void read_by_order(Schedule& schedule,
                   const StageGraph& graph,
                   const std::string& name,
                   Console& console) {
  const std::size_t early = count_early_cells(schedule, graph);
  if (early == 0) {
    return;
  }
  const bool chain = !find_wrong_graph(schedule);
  schedule = schedule.to_list();
  console.err << fmt::format(
      "note: {}: the columns are not times, because {}; each row is read as an order{} (--strict "
      "treats columns as times)\n",
      name,
      early == 1 ? "a cell stands before one that it needs"
                 : fmt::format("{} cells stand before cells that they need", early),
      chain ? "" : " of one chain of stages, unless --graph gives another graph");
}

/// Returns the names of the formats whose columns may not be times.
std::string untimed() {
  std::vector<std::string_view> names;
  for (const ScheduleFormat& format : schedule_formats()) {
    if (!format.columns_are_times) {
      names.push_back(format.name);
    }
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

/// Reads edges, one per line or joined by commas; `#` begins a comment.
std::string edges_of_lines(const std::string& text) {
  std::istringstream lines(text);
  std::string edges;
  for (std::string line; std::getline(lines, line);) {
    line.resize(std::min(line.find('#'), line.size()));
    const std::string_view part = formats::trim(line);
    if (!part.empty()) {
      edges += edges.empty() || edges.ends_with(',') ? "" : ",";
      edges += part;
    }
  }
  return edges;
}

}  // namespace

void add_file_argument(CLI::App& app, std::string& path, const std::string& what) {
  app.add_option("FILE", path, what + "; - is standard input")->required()->type_name("");
}

void add_read_options(CLI::App& app, ReadOptions& options) {
  options.command = app.get_name();
  app.add_option("--from",
                 options.from,
                 fmt::format("format of the file, if it is not the one that it looks like: {}",
                             format_names()))
      ->type_name("FORMAT");
  app.add_option("--graph",
                 options.graph,
                 "edges between stages, e.g. 0-2,1-2 [the file's own, or one chain]")
      ->type_name("EDGES|@FILE");
  app.add_flag(
      "--strict", options.strict, fmt::format("treat the columns of {} files as times", untimed()));
}

std::vector<NamedFile> files_read(const std::string& path, const ReadOptions& options) {
  std::vector<NamedFile> files{{"FILE", path}};
  if (options.graph.starts_with('@')) {
    files.emplace_back("--graph", options.graph.substr(1));
  }
  return files;
}

std::string source_name(const std::string& path) {
  return path == "-" ? "standard input" : fmt::format("'{}'", path);
}

std::string read_source(const std::string& path, const std::string& what, Console& console) {
  if (path != "-") {
    return read_file(path, what);
  }
  if (std::exchange(console.in_is_taken, true)) {
    throw Error(
        Errc::UsageArgument,
        fmt::format("{} expects a file, found - a second time; standard input can be read only "
                    "once",
                    what));
  }
  std::string bytes = read_stream(console.in);
  if (console.in.bad()) {
    throw Error(
        Errc::UsageFile,
        fmt::format("{} expects a readable file, found that standard input cannot be read to "
                    "its end; it may be closed, or a directory",
                    what));
  }
  return bytes;
}

StageGraph read_graph(const std::string& option, Console& console) {
  const bool in_file = option.starts_with('@');
  const std::string edges =
      in_file ? edges_of_lines(read_source(option.substr(1), "--graph", console)) : option;
  try {
    StageGraph graph = parse_stage_graph(edges);
    if (graph.size() > 0) {
      return graph;
    }
  } catch (const Error& error) {
    throw Error(Errc::UsageArgument, fmt::format("--graph: {}", error.message()));
  }
  throw Error(Errc::UsageArgument, "--graph expects edges such as 0-2,1-2, found none");
}

ScheduleFile read_schedule(const std::string& path, const ReadOptions& options, Console& console) {
  return schedule_in(read_source(path, "FILE", console), path, options, console);
}

ScheduleFile schedule_in(std::string text,
                         const std::string& path,
                         const ReadOptions& options,
                         Console& console) {
  const std::string name = source_name(path);
  if (text.starts_with("\xEF\xBB\xBF")) {
    text.erase(0, 3);  // a byte order mark, which some editors write
  }
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
    throw Error(Errc::ScheduleParse,
                fmt::format("expected a schedule, found nothing in {}; write one line per row, "
                            "e.g. \"0F0 0B0\"",
                            name));
  }
  if (const std::size_t nul = text.find('\0'); nul != std::string::npos) {
    throw Error(
        Errc::ScheduleParse,
        fmt::format(
            "{} is not a text file: its byte {} is 0; name a file of a schedule", name, nul));
  }
  if (options.from.empty() && looks_like_strategy(text)) {
    throw Error(
        Errc::ScheduleParse,
        fmt::format("{} looks like a strategy, expected a schedule; stagecraft dag show and "
                    "train --strategy read strategies",
                    name));
  }
  const ScheduleFormat& format = options.from.empty()
                                     ? detect_format(text, path)
                                     : format_of(options.command, "--from", options.from);
  try {
    ReadSchedule read = format.read(text);
    if (!options.graph.empty()) {
      read.schedule = with_graph(read.schedule,
                                 over_stages_of(read.schedule, read_graph(options.graph, console)));
    }
    StageGraph graph = read.schedule.stage_graph();
    if (!format.columns_are_times && !options.strict &&
        read.schedule.form() == Schedule::Form::Array) {
      read_by_order(read.schedule, graph, name, console);
    }
    return {path,
            name,
            std::move(text),
            &format,
            std::move(read.schedule),
            std::move(graph),
            std::move(read.communication),
            format.words.graph != formats::GraphWords::Any && options.graph.empty(),
            std::move(read.left_out)};
  } catch (const Error& error) {
    if (error.code() != Errc::ScheduleParse) {
      throw;
    }
    throw Error(Errc::ScheduleParse, fmt::format("{}: {}", name, error.message()));
  }
}

}  // namespace stagecraft::tools
