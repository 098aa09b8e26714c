#include "stagecraft/actors/launch/ways/slurm.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include <fmt/format.h>

#include "stagecraft/actors/launch/network/local_address.h"
#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

std::string slurm_variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

int number_in(const char* name) {
  const std::string text = slurm_variable(name);
  int number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (fault != std::errc{} || end != text.data() + text.size() || number < 0) {
    throw Error(
        Errc::UsageArgument,
        fmt::format("{} expects a whole number, as srun sets it, found \"{}\"", name, text));
  }
  return number;
}

int number_if_said(const char* name) {
  return slurm_variable(name).empty() ? 0 : number_in(name);
}

/// Returns the memory of this job here. Slurm gives it per node or per processor, in MiB.
double memory_bytes() {
  constexpr double kMiB = 1024.0 * 1024.0;
  const int of_node = number_if_said("SLURM_MEM_PER_NODE");
  const int of_processors =
      number_if_said("SLURM_MEM_PER_CPU") * number_if_said("SLURM_CPUS_ON_NODE");
  return kMiB * (of_node > 0 ? of_node : of_processors);
}

enum class End { First, Last };

/// Returns a node of a list in Slurm's form, "rack[1-2]-node[01-03,07],login".
std::string node_at(End end, std::string_view list) {
  std::string node;
  for (std::size_t at = 0; at < list.size(); ++at) {
    if (list[at] == '[') {
      const std::size_t close = std::min(list.find(']', at), list.size());
      const std::string_view numbers = list.substr(at + 1, close - at - 1);
      node += end == End::First ? numbers.substr(0, numbers.find_first_of(",-"))
                                : numbers.substr(numbers.find_last_of(",-") + 1);
      at = close;
    } else if (list[at] != ',') {
      node += list[at];
    } else if (end == End::First) {
      break;
    } else {
      node.clear();
    }
  }
  return node;
}

std::string other_node() {
  const std::string here = slurm_variable("SLURMD_NODENAME"),
                    all = slurm_variable("SLURM_STEP_NODELIST");
  for (const End end : {End::First, End::Last}) {
    if (std::string node = node_at(end, all); node != here) {
      return node;
    }
  }
  return "";
}

/// Returns whether this is no step of srun: Slurm numbers others from 0xfffffff0 on. These are the
/// script of a batch job, and the shell that salloc opens on the first node (use_interactive_step),
/// which has one task whatever the job has.
bool is_shell_of_job() {
  constexpr std::uint64_t kFirstOfSpecial = 0xfffffff0;
  const std::string text = slurm_variable("SLURM_STEP_ID");
  std::uint64_t number = 0;
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), number);
  return fault == std::errc{} && end == text.data() + text.size() && number >= kFirstOfSpecial;
}

/// Processes of the step join by themselves; the words for people differ from those of others.
class WorkersOfSlurm final : public WorkerWay {
 public:
  explicit WorkersOfSlurm(const SpawnOptions& options)
      : coming_(options.workers_coming), meeting_place_(options.meeting_place) {}

  [[nodiscard]] bool starts_workers() const override { return false; }
  [[nodiscard]] bool is_elsewhere() const override { return true; }

  void require_places(int places) const override {
    if (places > coming_) {
      throw Error(Errc::UsageArgument,
                  fmt::format("{} worker processes are needed, and {} come: start more processes "
                              "in this step (srun --ntasks), or use fewer ranks",
                              places,
                              coming_));
    }
  }

  [[nodiscard]] std::string late_advice(const WorkerProcessOptions& join) const override {
    return fmt::format(
        "they are the other processes of this step: have all of them started (squeue --steps), see "
        "their nodes '{}', and do they reach {}? launch --join-seconds allows more time",
        meeting_place_,
        host_and_port(join.host, join.port));
  }

 private:
  const int coming_;
  const std::string meeting_place_;
};

}  // namespace

const BatchSystem kSlurm{
    .step = slurm_step,
    .name = "slurm",
    .starter = "srun",
    .starts_one = "srun --ntasks=1",
    .log_files = "srun --output=rank-%t.log",
    .processors = "--cpus-per-task",
    .memory = "jobs of salloc and sbatch with --mem",
    .how_to_be_in =
        "to be run by srun inside a job of Slurm (srun stagecraft launch -- ...; the "
        "shell of salloc and the script of sbatch are one process each)"};

std::unique_ptr<const WorkerWay> workers_of_slurm(const SpawnOptions& options) {
  return std::make_unique<WorkersOfSlurm>(options);
}

std::optional<BatchStep> slurm_step() {
  if (slurm_variable("SLURM_PROCID").empty() || slurm_variable("SLURM_STEP_ID").empty() ||
      is_shell_of_job()) {
    return std::nullopt;
  }
  const std::string again = slurm_variable("SLURM_RESTART_COUNT");
  return BatchStep{.system = &kSlurm,
                   .process = number_in("SLURM_PROCID"),
                   .processes = number_in("SLURM_STEP_NUM_TASKS"),
                   .name = fmt::format("{}.{}{}{}",
                                       slurm_variable("SLURM_JOB_ID"),
                                       slurm_variable("SLURM_STEP_ID"),
                                       again.empty() ? "" : "-",
                                       again),
                   .folder = slurm_variable("SLURM_SUBMIT_DIR"),
                   .node = slurm_variable("SLURMD_NODENAME"),
                   .other_node = other_node(),
                   .processors = number_if_said("SLURM_CPUS_PER_TASK"),
                   .memory_bytes = memory_bytes()};
}

}  // namespace stagecraft
