/// `stagecraft schedule list`
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/tools/common/command_json.h"
#include "stagecraft/tools/common/command_line.h"
#include "stagecraft/tools/common/output.h"
#include "stagecraft/tools/schedule/commands.h"
#include "stagecraft/tools/schedule/input/format.h"

namespace stagecraft::tools {
namespace {

using Json = nlohmann::ordered_json;

std::string_view name_of(ChunkRule rule) {
  switch (rule) {
    case ChunkRule::One:
      return "one";
    case ChunkRule::Two:
      return "two";
    case ChunkRule::Open:
      return "open";
    case ChunkRule::ByParameter:
      return "by-parameter";
  }
  return "";
}

std::string as_json() {
  Json list = Json::array();
  for (const BuilderInfo& builder : builders()) {
    Json parameters = Json::array();
    for (const BuilderParameter& p : builder.parameters) {
      parameters.push_back({{"name", p.name}, {"meaning", p.meaning}, {"default", p.fallback}});
    }
    list.push_back({{"name", builder.name},
                    {"summary", builder.summary},
                    {"constraint", builder.constraint},
                    {"chunks", name_of(builder.chunks)},
                    {"takes_graph", builder.takes_graph},
                    {"parameters", parameters}});
  }
  return command_json("schedule list", {{"builders", list}});
}

/// Returns a line for each thing that the builder needs, with its meaning.
std::string details(const BuilderInfo& builder) {
  std::string text;
  const auto line = [&](std::string_view what, std::string_view meaning) {
    text += fmt::format("                  {:<21} {}\n", what, meaning);
  };
  if (!builder.constraint.empty()) {
    line("needs", builder.constraint);
  }
  if (builder.takes_graph) {
    line("--graph EDGES", "the stages, one device each");
  }
  if (builder.chunks == ChunkRule::Open) {
    line("--chunks V", "stages per device [2]");
  }
  for (const BuilderParameter& p : builder.parameters) {
    line(fmt::format("--set {}=...", p.name), fmt::format("{} [{}]", p.meaning, p.fallback));
  }
  return text;
}

std::string for_people() {
  std::string text;
  for (const BuilderInfo& builder : builders()) {
    text += fmt::format("{:<16}  {}\n{}", builder.name, builder.summary, details(builder));
  }
  return text + "\nP is --devices, M is --microbatches. Brackets hold defaults.\n\nfile formats\n" +
         format_lines();
}

}  // namespace

ExitCode list_schedules(const Words& words, Console& console) {
  bool json = false;
  CLI::App app("Lists the builders of `stagecraft schedule make`, and the file formats.",
               "stagecraft schedule list");
  app.footer(
      "Exit status: 0 listed; 2 wrong usage.\n"
      "Example: stagecraft schedule list");
  app.add_flag("--json", json, "print one JSON object");
  if (const auto help = parse_command_line(app, words)) {
    write_output("", *help, console);
    return ExitCode::Good;
  }
  write_output("", json ? as_json() : for_people(), console);
  return ExitCode::Good;
}

}  // namespace stagecraft::tools
