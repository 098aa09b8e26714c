/// The variables that Slurm sets in a process of a step of two processes on one node.
#pragma once

#include <map>
#include <string>

namespace stagecraft::tests {

using Variables = std::map<std::string, std::string>;

inline Variables of_process(int process, const std::string& folder) {
  return {{"SLURM_PROCID", std::to_string(process)},
          {"SLURM_STEP_NUM_TASKS", "2"},
          {"SLURM_JOB_ID", "7"},
          {"SLURM_STEP_ID", "0"},
          {"SLURM_SUBMIT_DIR", folder},
          {"SLURM_STEP_NODELIST", "node-a"},
          {"SLURMD_NODENAME", "node-a"}};
}

}  // namespace stagecraft::tests
