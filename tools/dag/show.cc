#include "stagecraft/tools/dag/show.h"

#include <variant>

#include <CLI/CLI.hpp>

#include "stagecraft/scheduler/dag/directives/apply.h"
#include "stagecraft/scheduler/dag/issue/issue.h"
#include "stagecraft/tools/common/command_line.h"
#include "stagecraft/tools/common/output.h"
#include "stagecraft/tools/dag/dag_input.h"
#include "stagecraft/tools/dag/dag_output.h"

namespace stagecraft::tools {
namespace {

TrainingDag bare_dag(const Strategy& strategy, const DagShowOptions& o, Console& console) {
  if (!o.read.graph.empty()) {
    return apply(strategy, bare_source(read_graph(o.read.graph, console)));
  }
  const int stages = o.stages > 0 ? o.stages : placed_stages(strategy);
  if (stages == 0) {
    wrong_usage(kShowDagCommand,
                "a strategy that places no stage by its number expects --stages N or --graph "
                "EDGES, found neither");
  }
  return apply(strategy, bare_source(StageGraph::chain(stages)));
}

}  // namespace

void show_bare_dag(const DagShowOptions& options, Console& console) {
  const DagInput input = read_dag_input(options, console);
  const auto* const strategy = std::get_if<Strategy>(&input);
  if (strategy != nullptr) {
    write_dag(issue(bare_dag(*strategy, options, console)), options, console);
    return;
  }
  const auto& file = std::get<ScheduleFile>(input);
  write_dag(issue(apply(strategy_of_file(file), bare_source(file.graph))), options, console);
}

ExitCode show_dag(const std::vector<std::string>& words, Console& console) {
  DagShowOptions options;
  CLI::App app("Shows the training DAG of a strategy or a schedule.", kShowDagCommand);
  app.option_defaults()->always_capture_default(false);
  add_dag_show_options(app, options);
  if (const auto help = parse_command_line(app, words)) {
    write_output("", *help, console);
    return ExitCode::Good;
  }
  complete_dag_show_options(app, options, console);
  show_bare_dag(options, console);
  return ExitCode::Good;
}

}  // namespace stagecraft::tools
