#include "stagecraft/tools/schedule/input/input.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/formats/jaxpp.h"
#include "stagecraft/scheduler/formats/json/json.h"
#include "stagecraft/scheduler/formats/json/piper.h"
#include "stagecraft/scheduler/formats/parts/cell_text.h"
#include "stagecraft/scheduler/formats/pytorch_csv.h"
#include "stagecraft/scheduler/formats/text.h"
#include "stagecraft/scheduler/formats/zero_bubble.h"
#include "stagecraft/scheduler/notes/column_order.h"
#include "stagecraft/scheduler/rules/repair/wrong_graph.h"
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
    unreadable(path, what, "a file that may not be opened");
  }
  std::string bytes = read_stream(file);
  if (file.bad()) {
    unreadable(path, what, "a file that broke off while being read");
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

/// The joint result of all formats' readers.
struct Parsed {
  Schedule schedule;
  std::vector<CommAction> communication = {};
  bool says_more = false;
};

Parsed parse(const std::string& text, ScheduleFormat format) {
  switch (format) {
    case ScheduleFormat::Json:
      return {parse_json(text)};
    case ScheduleFormat::Pytorch:
    case ScheduleFormat::PytorchComms: {
      PytorchSchedule read = parse_pytorch_csv(text);
      return {std::move(read.schedule), std::move(read.communication)};
    }
    case ScheduleFormat::Jaxpp:
      return {parse_jaxpp(text)};
    case ScheduleFormat::ZeroBubble:
      return {parse_zero_bubble(text)};
    case ScheduleFormat::Piper: {
      PiperSchedule read = parse_piper(text);
      return {std::move(read.schedule), {}, read.says_more};
    }
    case ScheduleFormat::List:
      return {Schedule::parse(text).to_list()};
    case ScheduleFormat::Text:
      break;
  }
  return {Schedule::parse(text)};
}

/// Reads the rows as lists if their columns show no times, and says so.
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
      "note: {}: columns show no times: {} before what {}; read as an order{} (--strict takes them "
      "for times)\n",
      name,
      early == 1 ? "a cell stands" : fmt::format("{} cells stand", early),
      early == 1 ? "it needs" : "they need",
      chain ? "" : " of one chain of stages; where they are none, say which feeds which: --graph");
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

void add_file_argument(CLI::App& app, std::string& path) {
  app.add_option("FILE", path, "a schedule file; - is standard input")->required()->type_name("");
}

void add_read_options(CLI::App& app, ReadOptions& options) {
  options.command = app.get_name();
  app.add_option(
         "--from",
         options.from,
         fmt::format("the file's format, where it is not what it looks like: {}", kFormatNames))
      ->type_name("FORMAT");
  app.add_option("--graph",
                 options.graph,
                 "which stage feeds which, e.g. 0-2,1-2 [the file's own, or one chain]")
      ->type_name("EDGES|@FILE");
  app.add_flag(
      "--strict", options.strict, "take the columns of a PyTorch CSV or JaxPP array for times");
}

std::string source_name(const std::string& path) {
  return path == "-" ? "standard input" : fmt::format("'{}'", path);
}

std::string read_source(const std::string& path, const std::string& what, Console& console) {
  if (path != "-") {
    return read_file(path, what);
  }
  if (std::exchange(console.in_is_taken, true)) {
    throw Error(Errc::UsageArgument,
                fmt::format("{} expects a file, found - a second time; standard input can be read "
                            "once",
                            what));
  }
  std::string bytes = read_stream(console.in);
  if (console.in.bad()) {
    throw Error(Errc::UsageFile,
                fmt::format("{} expects a readable file, found that standard input broke off while "
                            "being read: is it a directory, or closed?",
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
  const std::string name = source_name(path);
  std::string text = read_source(path, "FILE", console);
  if (text.starts_with("\xEF\xBB\xBF")) {
    text.erase(0, 3);  // a byte order mark, which some editors write
  }
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
    throw Error(Errc::ScheduleParse,
                fmt::format("expected a schedule, found nothing in {}; write one line per row, "
                            "e.g. \"0F0 0B0\"",
                            name));
  }
  const ScheduleFormat format = options.from.empty()
                                    ? detect_format(text, path)
                                    : format_of(options.command, "--from", options.from);
  try {
    Parsed read = parse(text, format);
    if (!options.graph.empty()) {
      read.schedule = with_graph(read.schedule,
                                 over_stages_of(read.schedule, read_graph(options.graph, console)));
    }
    StageGraph graph = read.schedule.stage_graph();
    const bool decoration = columns_may_be_decoration(format);
    if (decoration && !options.strict && read.schedule.form() == Schedule::Form::Array) {
      read_by_order(read.schedule, graph, name, console);
    }
    return {name,
            std::move(text),
            std::move(read.schedule),
            std::move(graph),
            std::move(read.communication),
            decoration && options.graph.empty(),
            read.says_more};
  } catch (const Error& error) {
    if (error.code() != Errc::ScheduleParse) {
      throw;
    }
    throw Error(Errc::ScheduleParse, fmt::format("{}: {}", name, error.message()));
  }
}

}  // namespace stagecraft::tools
