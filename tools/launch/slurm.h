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
  std::string folder;         ///< where the job was submitted
  std::string node;           ///< as Slurm names it
  std::string other_node;     ///< one that is not this process's; empty: the step is on one alone
  int processors = 0;         ///< of each process; 0: Slurm does not say
  double memory_bytes = 0.0;  ///< of this job on this node; 0: Slurm does not say
};

/// Nothing: this is no step of Slurm, or the shell or script of a job.
/// Errors: UsageArgument for variables that make no sense.
[[nodiscard]] std::optional<SlurmStep> slurm_step();

/// For a command that trains: refuses where it was started for each task of a step, and not by
/// `stagecraft launch`. Errors: UsageArgument.
void refuse_to_train_in_each_process();

}  // namespace stagecraft::tools
