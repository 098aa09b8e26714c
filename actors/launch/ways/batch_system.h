/// BatchSystem is a system that starts the processes of a cluster itself, as the steps of its jobs.
/// Process 0 of a step is the driver, the others are its workers (`stagecraft launch`).
///
/// Each system has a way (worker_way.h) and a record of this type. The table in ways.h lists them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace stagecraft {

struct BatchSystem;

/// BatchStep is the place of this process in a step of a batch system.
struct BatchStep {
  const BatchSystem* system = nullptr;
  int process = 0;    ///< number of this process
  int processes = 1;  ///< number of all processes
  /// Names job and step, "4711.0": unique in the cluster at any time, and for each start of a job
  /// that is queued again.
  std::string name;
  std::string folder;         ///< where the job was submitted
  std::string node;           ///< the node of this process, as the system names it
  std::string other_node;     ///< a node other than this process's; empty: there is none
  int processors = 0;         ///< of each process; 0: the system does not say
  double memory_bytes = 0.0;  ///< of this job on this node; 0: the system does not say
};

struct BatchSystem {
  /// Returns the step of this process, from its environment; nothing if the process is in no step
  /// of this system.
  /// Errors: UsageArgument for an environment that makes no sense.
  std::optional<BatchStep> (*step)();

  // The following words are for messages.
  std::string_view name;        ///< "slurm"
  std::string_view starter;     ///< the program that starts the processes of a step: "srun"
  std::string_view starts_one;  ///< starts one process: "srun --ntasks=1"
  std::string_view log_files;   ///< gives each process a file of output: "srun --output=..."
  std::string_view processors;  ///< the option that allocates processors: "--cpus-per-task"
  /// The jobs in which processes know their memory: "jobs of salloc and sbatch with --mem".
  std::string_view memory;
  std::string_view how_to_be_in;  ///< "to be run by srun inside a job of Slurm (...)"
};

}  // namespace stagecraft
