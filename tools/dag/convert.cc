#include "stagecraft/tools/dag/convert.h"

#include <cstdint>
#include <variant>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/scheduler/strategy/piper_strategy.h"
#include "stagecraft/scheduler/strategy/strategy_text.h"
#include "stagecraft/tools/common/command_line.h"
#include "stagecraft/tools/common/files_apart.h"
#include "stagecraft/tools/common/output.h"
#include "stagecraft/tools/common/word_choice.h"
#include "stagecraft/tools/dag/dag_input.h"

namespace stagecraft::tools {
namespace {

constexpr const char* kConvertCommand = "stagecraft dag convert";

enum class StrategyForm : std::uint8_t { Text, Piper };

Strategy strategy_to_write(const DagInput& input) {
  if (const auto* const strategy = std::get_if<Strategy>(&input)) {
    return *strategy;
  }
  const auto& file = std::get<ScheduleFile>(input);
  Strategy strategy = strategy_of_file(file);
  if (Layout::of(file.schedule).replicas() > 1) {
    throw Error(Errc::UsageArgument,
                fmt::format("FILE expects a schedule whose rows run each stage once, found {} with "
                            "@replicas, which a strategy cannot say",
                            file.name));
  }
  return strategy;
}

}  // namespace

ExitCode convert_strategy(const std::vector<std::string>& words, Console& console) {
  DagShowOptions options{.read = {.command = kConvertCommand}};
  StrategyForm to = StrategyForm::Text;
  CLI::App app("Writes a strategy, or the strategy that a schedule stands for.", kConvertCommand);
  app.option_defaults()->always_capture_default(false);
  app.footer(
      "If the form cannot express the strategy, the error names all directives that it cannot "
      "express.\n"
      "Exit status: 0 written; 1 the schedule breaks a rule; 2 wrong usage, a file that cannot be "
      "read, a strategy that the form cannot express, or output that cannot be written.\n"
      "Example: stagecraft dag convert two-copies.strategy --to piper -o two-copies.json");
  add_file_argument(app, options.file, "strategy or schedule file");
  add_read_options(app, options.read);
  add_choice<StrategyForm>(app,
                           "--to",
                           to,
                           {{"text", StrategyForm::Text}, {"piper", StrategyForm::Piper}},
                           "text, a directive in each line, or piper, its JSON file")
      ->default_str("")
      ->required();
  app.add_option("-o,--output", options.output, "file to write [standard output]")
      ->type_name("FILE");
  if (const auto help = parse_command_line(app, words)) {
    write_output("", *help, console);
    return ExitCode::Good;
  }
  check_all_apart(files_read(options.file, options.read), {{"--output", options.output}});
  const Strategy strategy = strategy_to_write(read_dag_input(options, console));
  write_output(
      options.output, to == StrategyForm::Text ? to_string(strategy) : to_piper(strategy), console);
  return ExitCode::Good;
}

}  // namespace stagecraft::tools
