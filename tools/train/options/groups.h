/// groups declares the groups of options of `stagecraft train`: one source for each, which declares
/// its options and judges them together after the parsing.
///
/// Only parse_train_options() calls them. The options outlive the parsing.
#pragma once

#include <string>

#include "stagecraft/tools/train/options/options.h"

namespace CLI {
class App;
}

namespace stagecraft::tools {

inline constexpr const char* kTrainCommand = "stagecraft train";

void add_pipeline(CLI::App& app, PipelineOptions& options);

void add_planner(CLI::App& app, PlannerOptions& planner, CostFiles& costs);
/// Checks the group. Errors: UsageArgument for an unknown planner, and for options that a planner
/// decides.
void check_planner(const TrainOptions& options, const CLI::App& app);

void add_optimizer(CLI::App& app, OptimizerOptions& options);
/// Checks the group. Errors: UsageArgument for a setting that the optimizer or the learning rate
/// does not have.
void check_optimizer_settings(const OptimizerOptions& options, const CLI::App& app);

void add_workers(CLI::App& app, WorkerOptions& options);
/// Checks the group. Errors: UsageArgument for credentials of workers that need none, and for
/// restarts or spares of workers that cannot be replaced.
void check_workers(const WorkerOptions& options, const CLI::App& app);

void add_run(CLI::App& app, RunOptions& options);
/// Checks the group. Errors: UsageArgument for a deadline outside the range of a trainer.
void check_run(const RunOptions& options);

void add_keeping(CLI::App& app, KeepingOptions& options);
/// Sets the folder of --save-every and the places in --run-dir, and takes slashes from the ends of
/// folders. Errors: UsageArgument for options that contradict each other.
void settle_keeping(KeepingOptions& options, const CLI::App& app);

}  // namespace stagecraft::tools
