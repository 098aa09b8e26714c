#include "stagecraft/tools/plan/plan.h"

#include <chrono>
#include <optional>
#include <ostream>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/planners/proposal.h"
#include "stagecraft/scheduler/planners/propose.h"
#include "stagecraft/tools/common/command_line.h"
#include "stagecraft/tools/common/output.h"
#include "stagecraft/tools/common/status_line.h"
#include "stagecraft/tools/plan/options.h"
#include "stagecraft/tools/plan/page.h"
#include "stagecraft/tools/plan/report.h"
#include "stagecraft/tools/plan/what_if_report.h"

namespace stagecraft::tools {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Says until when a search goes on.
struct SearchTime {
  Clock::time_point begin;      ///< of the command's searches
  std::optional<double> limit;  ///< seconds from then on
  std::string_view which;  ///< search, if there are two: " with ...", for the note of the limit
};

/// Searches for as long as there is time; on a terminal, shows what is searched.
std::vector<PlanProposal> searched(PlanRequest& request,
                                   const PlanOptions& options,
                                   const SearchTime& time,
                                   Console& console) {
  StatusLine line(console, options.json);
  bool was_cut_short = false;
  request.goes_on = [&](std::string_view what) {
    const double seconds = seconds_since(time.begin);
    line.say(fmt::format("planning, {:.0f} s: {}", seconds, what));
    was_cut_short = was_cut_short || (time.limit && seconds >= *time.limit);
    return !was_cut_short;
  };
  std::vector<PlanProposal> found = propose(request, options.planner);
  request.goes_on = nullptr;
  if (was_cut_short) {
    line.say("");
    console.err << fmt::format(
        "note: the search{} ended after {:g} s; a larger --time-limit may find a better plan\n",
        time.which,
        *time.limit);
  }
  return found;
}

/// Returns the best plan without the changes of --what-if.
PlanBefore best_before(PlanRequest request,
                       const PlanOptions& options,
                       SearchTime time,
                       Console& console) {
  if (time.limit) {
    *time.limit /= 2;  // the search with the changes has the rest
  }
  time.which = " without --what-if";
  try {
    return searched(request, options, time, console).front();
  } catch (const Error& error) {
    if (error.code() != Errc::PlanInfeasible) {
      throw;
    }
    return std::nullopt;
  }
}

}  // namespace

ExitCode plan(const std::vector<std::string>& words, Console& console) {
  PlanOptions options;
  CLI::App app(
      "Chooses where to cut a model and by which schedule to train it, and says why. See "
      "docs/planning.md.",
      "stagecraft plan");
  app.footer(
      "Costs come from `stagecraft profile`. The simulator judges every plan; the best is the "
      "fastest that fits. To train by it: stagecraft train ... --schedule FILE --cut @FILE, with "
      "--zero if the plan says so.\n"
      "Exit status: 0 success; 1 no plan fits; 2 wrong usage, a file that cannot be used, or "
      "output that cannot be written.\n"
      "Example: stagecraft plan costs.json --devices 4 --schedule-out plan.txt --cut-out plan.cut");
  add_plan_options(app, options);
  if (const auto help = parse_command_line(app, words)) {
    write_output("", *help, console);
    return ExitCode::Good;
  }
  const PlanRequest unchanged = plan_request(options, console);
  PlanRequest request = with_changes(unchanged, options);
  const bool changes = !options.what_if.empty();
  const SearchTime time{.begin = Clock::now(),
                        .limit = options.time_limit,
                        .which = changes ? " with --what-if" : ""};
  const PlanBefore before = changes ? best_before(unchanged, options, time, console) : std::nullopt;
  const std::vector<PlanProposal> found = searched(request, options, time, console);
  if ((options.why || options.html) && options.time_limit) {
    // The reasons get half as much time again: a search that used its time still has some.
    request.goes_on = [begin = time.begin, most = 1.5 * *options.time_limit](std::string_view) {
      return seconds_since(begin) < most;
    };
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
    write_output("",
                 plan_json(request, found, options.top, options.why, changes ? &before : nullptr),
                 console);
    return ExitCode::Good;
  }
  write_output(
      "",
      plan_text(request, found, options.top) +
          (changes ? '\n' + what_if_text(request.devices, before, found.front()) : std::string()) +
          (options.why ? why_text(request, found) : std::string()),
      console);
  return ExitCode::Good;
}

}  // namespace stagecraft::tools
