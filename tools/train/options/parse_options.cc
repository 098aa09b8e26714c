#include "stagecraft/tools/train/options/parse_options.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "stagecraft/actors/executor/device/device_name.h"
#include "stagecraft/compiler/libtorch/program_device.h"
#include "stagecraft/tools/common/command_line.h"
#include "stagecraft/tools/train/catalog/model_options.h"
#include "stagecraft/tools/train/options/groups.h"
#include "stagecraft/tools/train/options/update_rule.h"

namespace stagecraft::tools {
namespace {

constexpr const char* kAbout =
    "Trains a model as a pipeline of stages, with a rank for each row of the schedule.\n"
    "The model is a small one that comes with Stagecraft, or a file of PyTorch.";
constexpr const char* kFooter =
    "Ctrl-C, SIGTERM or SIGHUP ends the run after its current step; it then saves and reports as "
    "usual. A second Ctrl-C or SIGTERM, more than 1 s later, ends it at once. If nobody can read "
    "the output, a run that writes files continues to its end, and any other run stops; with "
    "--quiet it notices that only when it prints.\n\n"
    "Environment (docs/environment.md): STAGECRAFT_WORKERS and STAGECRAFT_PROCESSOR stand for "
    "their options, STAGECRAFT_RANKS for --ranks if the schedule leaves the number open. Worker "
    "processes also follow STAGECRAFT_CREDENTIALS, STAGECRAFT_HOSTS, STAGECRAFT_PER_HOST, "
    "STAGECRAFT_SSH, STAGECRAFT_INTERFACE, STAGECRAFT_PORT, STAGECRAFT_LOCAL_RANKS, "
    "STAGECRAFT_WORKERS_COMING, STAGECRAFT_MEETING_PLACE, STAGECRAFT_LOG_DIR, "
    "STAGECRAFT_JOIN_SECONDS, STAGECRAFT_SILENCE_SECONDS and STAGECRAFT_WORKER.\n\n"
    "Exit status: 0 success; 1 the run failed, the schedule breaks a rule, or memory does not "
    "suffice; 2 wrong usage, a file that cannot be used, or output that cannot be written; 128 + N "
    "ended by signal N.\n"
    "Example: stagecraft train --steps 5 --stages 2 --schedule gpipe --verify";

/// Reports what a model from a file settles later where the options alone say it.
void check_rate_steps(const TrainOptions& options) {
  if (options.model.file && !options.run.steps) {
    return;  // the data say how many steps there are
  }
  const std::int64_t steps = options.run.steps.value_or(kUsualSteps);
  if (options.optimizer.warmup > steps) {
    wrong_usage(
        kTrainCommand,
        fmt::format(
            "--warmup expects at most --steps {}, found {}", steps, options.optimizer.warmup));
  }
  if (const std::string misfit = rate_misfit(options.optimizer, steps); !misfit.empty()) {
    wrong_usage(kTrainCommand, misfit);
  }
}

/// A model file has its data for evaluations in a folder of their own, or in a part of its shards.
void check_evaluation_data(const TrainOptions& options) {
  const RunOptions& run = options.run;
  if (run.eval_data && !options.model.file) {
    wrong_usage(kTrainCommand,
                fmt::format("--eval-data is an option of models from files, found --model {}, "
                            "which holds data out by itself; leave one of the two out",
                            options.model.name));
  }
  if (run.eval_data && !run.eval_every) {
    wrong_usage(kTrainCommand,
                "--eval-data expects --eval-every, the steps between evaluations, found none");
  }
  if (run.eval_data && options.data.held_out > 0.0) {
    wrong_usage(kTrainCommand,
                "--eval-data expects no --held-out, which holds out a part of --data for the same "
                "use; leave one of the two out");
  }
  if (run.eval_every && options.model.file && !run.eval_data && options.data.held_out == 0.0) {
    wrong_usage(kTrainCommand,
                "--eval-every expects --eval-data DIR with data that no step trains on, or "
                "--held-out FRACTION of the shards in --data, found none");
  }
}

void check_copies(const PipelineOptions& pipeline) {
  if (pipeline.dp > 1 && pipeline.dp % pipeline.ep != 0) {
    wrong_usage(kTrainCommand,
                fmt::format("--ep expects a divisor of --dp {}, found {}, the number of "
                            "copies that divide the experts",
                            pipeline.dp,
                            pipeline.ep));
  }
}

}  // namespace

std::variant<TrainOptions, HelpText> parse_train_options(
    const std::vector<std::string>& arguments) {
  TrainOptions options;
  CLI::App app(kAbout, kTrainCommand);
  app.option_defaults()->always_capture_default();
  app.footer(kFooter);
  add_model_options(app, options.model, options.data);
  add_pipeline(app, options.pipeline);
  add_planner(app, options.planner, options.costs);
  add_optimizer(app, options.optimizer);
  add_workers(app, options.workers);
  add_run(app, options.run);
  add_keeping(app, options.keeping);
  if (const auto help = parse_command_line(app, arguments)) {
    return HelpText{*help};
  }
  check_optimizer_settings(options.optimizer, app);
  settle_model(kTrainCommand, app, options.model, options.data, {"--microbatch-sizes"});
  check_evaluation_data(options);
  check_copies(options.pipeline);
  check_planner(options, app);
  settle_keeping(options.keeping, app);
  check_workers(options.workers, app);
  check_rate_steps(options);
  if (options.optimizer.rate_kind == RateKind::Plateau && !options.run.eval_every) {
    wrong_usage(kTrainCommand,
                "--lr-schedule plateau expects --eval-every: the rate falls by what evaluations "
                "find");
  }
  if (options.optimizer.rate_kind == RateKind::Epoch && !options.data.folder) {
    wrong_usage(kTrainCommand,
                "--lr-schedule epoch expects --data: other data are drawn anew for each step and "
                "have no epochs");
  }
  if (options.keeping.save_averages && !options.optimizer.average) {
    wrong_usage(kTrainCommand,
                "--save-averages expects --average, found none: give the share that stays in a "
                "step, e.g. --average 0.999");
  }
  check_run(options.run);
  if (options.run.verify && !is_program_device(named_device(options.workers.device))) {
    wrong_usage(kTrainCommand,
                "--verify expects --device cpu, found --device " + options.workers.device +
                    ": another device draws and rounds in its own way");
  }
  return options;
}

}  // namespace stagecraft::tools
