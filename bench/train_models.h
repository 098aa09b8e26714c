/// The models of `stagecraft train` as benchmarks of all of them take them: of its usual sizes, 8
/// microbatches of 8.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/tools/train/job.h"

namespace stagecraft::bench {

/// What `stagecraft train` makes of `--model` with these arguments beside it.
[[nodiscard]] tools::TrainOptions train_options(const std::string& model,
                                                std::vector<std::string> more = {});

/// One stage on each rank.
[[nodiscard]] tools::TrainJob train_job(const std::string& model, int ranks);

/// Trains it on ranks that are threads. Units: seconds of each step, after two that warm up.
[[nodiscard]] std::vector<double> step_seconds(const tools::TrainJob& job, int steps);

[[nodiscard]] std::vector<std::string> names_of_train_models();

/// Prints the hardware and calls `measure` for the models that the arguments name; for all of them
/// where there are no arguments. Operators run on one thread.
void each_train_model(int argc, char** argv, void (*measure)(const std::string& model));

}  // namespace stagecraft::bench
