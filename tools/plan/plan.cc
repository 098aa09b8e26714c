#include "stagecraft/tools/plan/plan.h"

#include <CLI/CLI.hpp>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/planners/proposal.h"
#include "stagecraft/tools/command_line.h"
#include "stagecraft/tools/output.h"
#include "stagecraft/tools/plan/options.h"
#include "stagecraft/tools/plan/page.h"
#include "stagecraft/tools/plan/report.h"

namespace stagecraft::tools {
namespace {

/// A file says nothing of replicas, and would be run without them.
void require_trainable(const PlanProposal& best) {
  if (!best.candidate.replicas.empty()) {
    throw Error(Errc::UsageArgument,
                "--schedule-out and --cut-out expect a plan that train runs; the best plan has "
                "stages with replicas of their own; leave --replicas out");
  }
}

}  // namespace

ExitCode plan(const std::vector<std::string>& words, Console& console) {
  PlanOptions options;
  CLI::App app("Chooses where to cut a model and by which schedule to train it, and says why.",
               "stagecraft plan");
  app.footer(
      "Costs come from `stagecraft profile`. Every plan is judged by the simulator; the best is "
      "the "
      "fastest\nthat fits. Train it: stagecraft train ... --schedule FILE --cut @FILE");
  add_plan_options(app, options);
  if (const auto help = parse_command_line(app, words)) {
    write_output("", *help, console);
    return ExitCode::Good;
  }
  const PlanRequest request = plan_request(options, console);
  const std::vector<PlanProposal> found = propose(request, options.planner);
  if (options.schedule_out || options.cut_out) {
    require_trainable(found.front());
  }
  if (options.schedule_out) {
    write_output(*options.schedule_out, to_string(found.front().candidate.schedule), console);
  }
  if (options.cut_out) {
    write_output(*options.cut_out, cut_text(request, found.front()), console);
  }
  if (options.html) {
    write_output(*options.html, plan_page(request, found), console);
  }
  if (options.json) {
    write_output("", plan_json(request, found, options.top, options.why), console);
    return ExitCode::Good;
  }
  write_output("",
               plan_text(request, found, options.top) +
                   (options.why ? why_text(request, found) : std::string()),
               console);
  return ExitCode::Good;
}

}  // namespace stagecraft::tools
