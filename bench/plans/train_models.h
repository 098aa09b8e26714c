/// train_models makes the models of `stagecraft train` for benchmarks of all of them: in their
/// usual sizes, with 8 microbatches of 8.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/tools/train/job/job.h"

namespace stagecraft::bench {

/// Returns the options that `stagecraft train` makes of `--model` with these further arguments.
[[nodiscard]] tools::TrainOptions train_options(const std::string& model,
                                                std::vector<std::string> more = {});

/// Returns a job with one stage on each rank.
[[nodiscard]] tools::TrainJob train_job(const std::string& model, int ranks);

/// Trains the job on ranks that are threads. Units: seconds of each step, after two warm-up steps.
[[nodiscard]] std::vector<double> step_seconds(const tools::TrainJob& job, int steps);

[[nodiscard]] std::vector<std::string> names_of_train_models();

/// Prints the hardware and calls `measure` for the models that the arguments name, or for all
/// models if there are no arguments. Operators run on one thread.
void each_train_model(int argc, char** argv, void (*measure)(const std::string& model));

}  // namespace stagecraft::bench
