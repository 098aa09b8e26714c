/// SlurmStep: the place of this process in a step of Slurm, from the environment of srun.
#pragma once

#include <optional>
#include <string>

namespace stagecraft::tools {

struct SlurmStep {
  int process = 0;    ///< number of this process
  int processes = 1;  ///< number of all processes
  /// Of job and step, "4711.0": unique in the cluster at any time. A job that is queued again keeps
  /// its number, so the number of its restart follows, "4711.0-1".
  std::string name;
  std::string folder;         ///< where the job was submitted
  std::string node;           ///< as Slurm names it
  std::string other_node;     ///< a node other than this process's; empty: there is none
  int processors = 0;         ///< of each process; 0: Slurm does not say
  double memory_bytes = 0.0;  ///< of this job on this node; 0: Slurm does not say
};

/// Returns nothing if this is no step of Slurm, or if it is the shell or script of a job.
/// Errors: UsageArgument for variables that make no sense.
[[nodiscard]] std::optional<SlurmStep> slurm_step();

/// For a command that trains: refuses if it was started for each task of a step, and not by
/// `stagecraft launch`. Errors: UsageArgument.
void refuse_to_train_in_each_process();

}  // namespace stagecraft::tools
