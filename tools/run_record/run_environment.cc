#include "stagecraft/tools/run_record/run_environment.h"

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace stagecraft::tools {
namespace {

using Names = std::span<const std::string_view>;

/// STAGECRAFT_WATCH_LINK is not among them: it holds a key.
constexpr std::string_view kOfRun[]{"STAGECRAFT_WORKERS",       "STAGECRAFT_RANKS",
                                    "STAGECRAFT_CREDENTIALS",   "STAGECRAFT_HOSTS",
                                    "STAGECRAFT_PER_HOST",      "STAGECRAFT_SSH",
                                    "STAGECRAFT_INTERFACE",     "STAGECRAFT_PORT",
                                    "STAGECRAFT_LOCAL_RANKS",   "STAGECRAFT_WORKERS_COMING",
                                    "STAGECRAFT_MEETING_PLACE", "STAGECRAFT_LOG_DIR",
                                    "STAGECRAFT_JOIN_SECONDS",  "STAGECRAFT_SILENCE_SECONDS",
                                    "STAGECRAFT_PROCESSOR",     "STAGECRAFT_WORKER",
                                    "ATEN_CPU_CAPABILITY",      "ONEDNN_MAX_CPU_ISA",
                                    "DNNL_MAX_CPU_ISA",         "CUDA_VISIBLE_DEVICES",
                                    "CUDA_DEVICE_ORDER",        "CUBLAS_WORKSPACE_CONFIG"};

/// Names of libraries that have many variables, and no secrets.
constexpr std::string_view kLibraries[]{"OMP_", "GOMP_", "KMP_", "MKL_", "NCCL_"};

constexpr std::string_view kOfJob[]{"SLURM_CLUSTER_NAME",
                                    "SLURM_JOB_ID",
                                    "SLURM_JOB_NAME",
                                    "SLURM_ARRAY_JOB_ID",
                                    "SLURM_ARRAY_TASK_ID",
                                    "SLURM_STEP_ID",
                                    "SLURM_RESTART_COUNT",
                                    "SLURM_STEP_NUM_TASKS",
                                    "SLURM_STEP_NODELIST",
                                    "SLURMD_NODENAME",
                                    "JOB_COMPLETION_INDEX"};

bool is_one_of(Names names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

/// A record of a stranger may hold names that a shell would read as more than a name.
bool is_of_library(std::string_view name) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
  return name.find_first_not_of(kLetters) == std::string_view::npos &&
         std::ranges::any_of(kLibraries,
                             [&](std::string_view library) { return name.starts_with(library); });
}

template <class LetIn>
nlohmann::ordered_json chosen_of(const char* const* environment, LetIn let_in) {
  nlohmann::ordered_json variables = nlohmann::ordered_json::object();
  for (; *environment != nullptr; ++environment) {
    const std::string_view text(*environment);
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos && let_in(text.substr(0, equals))) {
      variables[std::string(text.substr(0, equals))] = text.substr(equals + 1);
    }
  }
  return variables;
}

}  // namespace

bool changes_run(std::string_view name) {
  return is_one_of(kOfRun, name) || is_of_library(name);
}

nlohmann::ordered_json variables_of_run(const char* const* environment) {
  return chosen_of(environment, &changes_run);
}

nlohmann::ordered_json variables_of_job(const char* const* environment) {
  return chosen_of(environment, [](std::string_view name) { return is_one_of(kOfJob, name); });
}

}  // namespace stagecraft::tools
