/// SlurmStep: what this process is in a step of Slurm, by the environment that srun gives it.
#pragma once

#include <optional>
#include <string>

namespace stagecraft::tools {

struct SlurmStep {
  int process = 0;     ///< which one
  int processes = 1;   ///< of how many
  std::string name;    ///< of job and step, "4711.0"
  std::string folder;  ///< where the job was submitted
  std::string node;    ///< on which this process runs, as Slurm calls it
};

/// Nothing: this is no step of Slurm.
/// Errors: UsageArgument for variables that make no sense.
[[nodiscard]] std::optional<SlurmStep> slurm_step();

}  // namespace stagecraft::tools
