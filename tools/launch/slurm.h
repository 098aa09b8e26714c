/// SlurmStep: what this process is in a step of Slurm, by the environment that srun gives it.
#pragma once

#include <optional>
#include <string>

namespace stagecraft::tools {

struct SlurmStep {
  int process = 0;    ///< which one
  int processes = 1;  ///< of how many
  /// Of job and step, "4711.0": no other step of the cluster has it at the same time. A job that is
  /// queued again keeps its number, so that how often it was stands behind it, "4711.0-1".
  std::string name;
  std::string folder;      ///< where the job was submitted
  std::string other_node;  ///< one that is not this process's; empty: the step is on one alone
};

/// Nothing: this is no step of Slurm.
/// Errors: UsageArgument for variables that make no sense.
[[nodiscard]] std::optional<SlurmStep> slurm_step();

}  // namespace stagecraft::tools
