#include "stagecraft/tools/dag/show.h"

#include <utility>
#include <variant>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/dag/apply.h"
#include "stagecraft/scheduler/dag/issue.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/scheduler/rules/validate.h"
#include "stagecraft/scheduler/strategy/strategy_of.h"
#include "stagecraft/scheduler/strategy/strategy_text.h"
#include "stagecraft/tools/common/command_line.h"
#include "stagecraft/tools/common/number.h"
#include "stagecraft/tools/common/output.h"
#include "stagecraft/tools/dag/dag_json.h"
#include "stagecraft/tools/dag/dag_text.h"
#include "stagecraft/tools/schedule/input/input.h"

namespace stagecraft::tools {
namespace {

constexpr const char* kShowCommand = "stagecraft dag show";

struct ShowOptions {
  std::string file;
  ReadOptions read;
  int stages = 0;  ///< 0: as many as the strategy places
  bool json = false;
  std::string output;
};

TrainingDag dag_of_strategy(const std::string& text, const ShowOptions& o, Console& console) {
  const Strategy strategy = parse_strategy(text);
  if (!o.read.graph.empty()) {
    return apply(strategy, bare_source(read_graph(o.read.graph, console)));
  }
  const int stages = o.stages > 0 ? o.stages : placed_stages(strategy);
  if (stages == 0) {
    wrong_usage(kShowCommand,
                "a strategy that places no stage by its number expects --stages N or --graph "
                "EDGES, found neither");
  }
  return apply(strategy, bare_source(StageGraph::chain(stages)));
}

TrainingDag dag_of_schedule(std::string text, const ShowOptions& o, Console& console) {
  if (o.stages > 0) {
    wrong_usage(kShowCommand,
                "--stages is an option of strategies, found a schedule, which has its own stages; "
                "leave it out");
  }
  const ScheduleFile file = schedule_in(std::move(text), o.file, o.read, console);
  if (const auto wrong = validate(file.schedule, file.graph); !wrong.empty()) {
    throw Error(Errc::ScheduleInvalid,
                fmt::format("{} breaks {}: {}; stagecraft schedule check lists all violations",
                            file.name,
                            wrong.front().rule,
                            wrong.front().message));
  }
  return apply(strategy_of(file.schedule, Layout::of(file.schedule)), bare_source(file.graph));
}

}  // namespace

ExitCode show_dag(const std::vector<std::string>& words, Console& console) {
  ShowOptions options{.read = {.command = kShowCommand}};
  CLI::App app("Prints the training DAG of a strategy or a schedule.", kShowCommand);
  app.option_defaults()->always_capture_default(false);
  app.footer(
      "Example: stagecraft schedule make 1f1b --devices 2 --microbatches 2 | stagecraft dag "
      "show -");
  add_file_argument(app, options.file, "a strategy or schedule file");
  add_read_options(app, options.read);
  app.add_option("--stages",
                 options.stages,
                 "stages of a strategy's chain [as many as it places by their number]")
      ->check(whole_number(1, kMaxStages))
      ->type_name("N");
  app.add_flag("--json", options.json, "print nodes, edges and lists as one JSON object");
  app.add_option("-o,--output", options.output, "the file to write [standard output]")
      ->type_name("FILE");
  if (const auto help = parse_command_line(app, words)) {
    write_output("", *help, console);
    return ExitCode::Good;
  }
  std::string text = read_source(options.file, "FILE", console);
  const IssuedDag issued =
      issue(looks_like_strategy(text) ? dag_of_strategy(text, options, console)
                                      : dag_of_schedule(std::move(text), options, console));
  write_output(options.output, options.json ? dag_json(issued) : dag_text(issued), console);
  return ExitCode::Good;
}

}  // namespace stagecraft::tools
