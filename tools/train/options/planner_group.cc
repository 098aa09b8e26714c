#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "stagecraft/scheduler/planners/registry.h"
#include "stagecraft/tools/common/command_line.h"
#include "stagecraft/tools/common/number.h"
#include "stagecraft/tools/train/options/groups.h"

namespace stagecraft::tools {
namespace {

constexpr const char* kPlannerGroup = "Plan and costs (docs/planning.md)";

}  // namespace

void add_planner(CLI::App& app, PlannerOptions& planner, CostFiles& costs) {
  app.add_option("--plan",
                 planner.name,
                 "measure the model, then let this planner, or the best of all (auto), choose cut, "
                 "schedule and microbatches")
      ->type_name("PLANNER")
      ->group(kPlannerGroup);
  app.add_option("--microbatch-sizes",
                 planner.microbatch_sizes,
                 "sizes of microbatches for --plan to choose from; a step keeps its samples [half, "
                 "once and twice --microbatch-size, unless the number or the size is given]")
      ->type_name("N,...")
      ->delimiter(',')
      ->check(whole_number(1))
      ->group(kPlannerGroup);
  app.add_option("--costs",
                 costs.in,
                 "costs.json of an earlier run or a profile: predict the time of a step, and build "
                 "zb-auto for these costs")
      ->type_name("FILE")
      ->group(kPlannerGroup);
  app.add_option("--costs-out",
                 costs.out,
                 "write the measured costs of stages, links and operators at the end, for --costs")
      ->type_name("FILE")
      ->group(kPlannerGroup);
}

void check_planner(const TrainOptions& options, const CLI::App& app) {
  if (!options.planner.name) {
    if (!options.planner.microbatch_sizes.empty()) {
      wrong_usage(kTrainCommand, "--microbatch-sizes expects --plan, found none; leave it out");
    }
    return;
  }
  for (const char* name : {"--schedule",
                           "--strategy",
                           "--dp",
                           "--ep",
                           "--zero",
                           "--cut",
                           "--graph",
                           "--stages",
                           "--chunks",
                           "--set"}) {
    if (app.count(name) > 0) {
      wrong_usage(kTrainCommand,
                  fmt::format("--plan decides {} itself; leave one of the two out", name));
    }
  }
  if (options.costs.in) {
    wrong_usage(
        kTrainCommand,
        "--costs expects no --plan, which measures the costs itself; leave one of the two out");
  }
  if (*options.planner.name != "auto") {
    (void)find_planner(*options.planner.name);
  }
}

}  // namespace stagecraft::tools
