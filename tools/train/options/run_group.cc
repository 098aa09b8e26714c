#include <cstdint>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "stagecraft/actors/watch/watch_access.h"
#include "stagecraft/base/error.h"
#include "stagecraft/tools/common/command_line.h"
#include "stagecraft/tools/common/number.h"
#include "stagecraft/tools/train/options/groups.h"

namespace stagecraft::tools {
namespace {

constexpr const char* kRunGroup = "Run";

// Each batch runs separately, one after the other.
constexpr std::int64_t kMostAccumulated = 1'000'000;

// The range that a trainer takes: from a millisecond to a year. Units: seconds.
constexpr double kLeastDeadline = 0.001;
constexpr double kMostDeadline = 365.0 * 24.0 * 3600.0;

}  // namespace

void add_run(CLI::App& app, RunOptions& o) {
  app.add_option(
         "--steps", o.steps, "step at which the run ends [50; with --data, all of the data once]")
      ->check(whole_number(1))
      ->group(kRunGroup);
  app.add_option("--accumulate", o.accumulate, "batches per step; their gradients are added up")
      ->check(whole_number(1, kMostAccumulated))
      ->group(kRunGroup);
  app.add_option("--seed", o.seed, "seed of weights, of the choice of data and of random operators")
      ->check(whole_number(0))
      ->group(kRunGroup);
  app.add_option("--eval-every", o.eval_every, "steps between evaluations on held-out data [never]")
      ->check(whole_number(1))
      ->group(kRunGroup);
  app.add_option("--eval-data",
                 o.eval_data,
                 "folder like --data with a model file's data for --eval-every [the part of "
                 "--held-out]")
      ->type_name("DIR")
      ->group(kRunGroup);
  app.add_option("--step-deadline", o.step_deadline, "longest time that a step may take [300]")
      ->type_name("SECONDS")
      ->check(positive_number())
      ->group(kRunGroup);
  app.add_option(
         "--serve",
         o.serve,
         "let the run be watched in a browser and by `stagecraft watch`; prints the link; over "
         "TLS at an address that other hosts reach (docs/watch.md)")
      ->type_name("[ADDRESS:PORT]")
      ->expected(0, 1)
      ->default_str("127.0.0.1:0")
      ->group(kRunGroup);
  app.add_flag("--step-by-step",
               o.step_by_step,
               "show each column of the schedule with what its tasks made, and wait for Enter "
               "before the next; implies --dispatch task")
      ->group(kRunGroup);
  app.add_flag("--verify",
               o.verify,
               "also train in one process, and compare bit by bit; for --device cpu")
      ->group(kRunGroup);
  app.add_flag("--dry-run",
               o.dry_run,
               "compile and check, print the plan and its memory, and run nothing")
      ->group(kRunGroup);
  app.add_flag("--force", o.force, "run even if memory seems not to suffice")->group(kRunGroup);
  app.add_flag(
         "--verbose",
         o.verbose,
         "print the time of each pass of compiling and lowering, and at the end how tensors go "
         "from rank to rank, to standard error")
      ->group(kRunGroup);
  app.add_flag("--json", o.json, "print one JSON object for each event")->group(kRunGroup);
  app.add_option("--log-every", o.log_every, "steps between lines of progress")
      ->check(whole_number(1))
      ->group(kRunGroup);
  app.add_flag("--report",
               o.report,
               "print all tables at the end: times and memory of each rank, planned against "
               "measured")
      ->group(kRunGroup);
  app.add_flag("--quiet", o.quiet, "print errors, notes and the last line only")
      ->excludes("--log-every")
      ->excludes("--report")
      ->excludes("--step-by-step")
      ->excludes("--verbose")
      ->group(kRunGroup);
}

void check_run(const RunOptions& o) {
  if (o.serve) {
    try {
      (void)parse_watch_place(*o.serve);
    } catch (const Error& error) {
      wrong_usage(kTrainCommand, "--serve: " + error.message());
    }
  }
  if (o.step_deadline && (*o.step_deadline < kLeastDeadline || *o.step_deadline > kMostDeadline)) {
    wrong_usage(kTrainCommand,
                fmt::format("--step-deadline expects {} to {} seconds, found {}",
                            kLeastDeadline,
                            static_cast<std::int64_t>(kMostDeadline),
                            *o.step_deadline));
  }
}

}  // namespace stagecraft::tools
