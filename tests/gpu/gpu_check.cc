/// Checks and measures Stagecraft on this machine's GPUs: a readable table, and a file of JSON.
///
///     stagecraft_gpu_check [COMMAND] [--json FILE]
///
/// COMMAND is the `stagecraft` program, for the checks with worker processes. Exit status: 0 all
/// is right, 1 something is not, 2 wrong usage, 4 there is no GPU to check.
#include <array>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <ATen/Context.h>
#include <CLI/CLI.hpp>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/actors/executor/device/cuda_library.h"
#include "stagecraft/bench/hardware.h"
#include "stagecraft/tests/gpu/equality.h"
#include "stagecraft/tests/gpu/measures.h"
#include "stagecraft/tools/common/command_json.h"
#include "stagecraft/tools/doctor/facts/gpu_facts.h"

namespace stagecraft::gpu {
namespace {

constexpr int kNoGpu = 4;

/// Makes LibTorch of this process choose operators that give the same bits on every call, or ends
/// that. Programs that are started meanwhile inherit the variable.
void compute_alike(bool alike) {
  at::globalContext().setDeterministicAlgorithms(alike, /*warn_only=*/true);
  at::globalContext().setAllowTF32CuDNN(!alike);
  // LibTorch 2.11 parses it by a regular expression for each product, so times are taken without.
  // It keeps workspaces and trusts the variable for their size, so it must not grow later.
  if (alike) {
    setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/1);  // NOLINT(concurrency-mt-unsafe)
  } else {
    unsetenv("CUBLAS_WORKSPACE_CONFIG");  // NOLINT(concurrency-mt-unsafe)
  }
}

bool all_equal(const std::vector<Equality>& equalities, nlohmann::json& report) {
  bool all = true;
  for (const Equality& one : equalities) {
    fmt::print("  {:<44} {}\n", one.name, one.problem.empty() ? "equal" : one.problem);
    report.push_back({{"name", one.name}, {"problem", one.problem}});
    all = all && one.problem.empty();
  }
  return all;
}

/// Prints and reports a figure. Returns whether it meets its goal.
bool figure(nlohmann::json& report,
            const std::string& name,
            const std::string& unit,
            double value,
            double most) {
  const bool is_met = value <= most;
  fmt::print("  {:<44} {:>10.3f} {:<3} at most {:.3f}{}\n",
             name,
             value,
             unit,
             most,
             is_met ? "" : "  MISSED");
  report.push_back({{"name", name}, {"unit", unit}, {"value", value}, {"most", most}});
  return is_met;
}

/// Prints and reports times, and figures that have goals.
bool measured(const Workload& workload, nlohmann::json& report) {
  constexpr double kMilli = 1e3, kPercent = 100.0;
  const Measures found = measure("cuda:0", workload);
  fmt::print("{} rows in a microbatch\n", workload.rows);
  fmt::print("  LibTorch alone {:.3f} ms, one rank {:.3f} ms, two ranks {:.3f} ms\n",
             kMilli * found.libtorch_seconds,
             kMilli * found.one_rank_seconds,
             kMilli * found.two_ranks_seconds);
  fmt::print("  peak {:.1f} MB, billed {:.1f} MB\n",
             1e-6 * static_cast<double>(found.peak_bytes),
             1e-6 * static_cast<double>(found.billed_bytes));
  report.push_back({{"rows", workload.rows},
                    {"libtorch_seconds", found.libtorch_seconds},
                    {"one_rank_seconds", found.one_rank_seconds},
                    {"two_ranks_seconds", found.two_ranks_seconds},
                    {"peak_bytes", found.peak_bytes},
                    {"billed_bytes", found.billed_bytes}});
  const auto slower = [&](double seconds) {
    return kPercent * (seconds / found.libtorch_seconds - 1.0);
  };
  bool all =
      figure(report, "one rank, slower than LibTorch by", "%", slower(found.one_rank_seconds), 5.0);
  all &= figure(report,
                "two ranks on a GPU, slower than LibTorch by",
                "%",
                slower(found.two_ranks_seconds),
                5.0);
  all &= figure(
      report, "compute streams idle between tasks", "%", kPercent * found.launch_gaps_part, 3.0);
  all &= figure(report,
                "first loss, differs from LibTorch's by",
                "%",
                kPercent * found.loss_differs_part,
                1.0);
  return all;
}

/// Prints and reports how long the GPU works in a step.
void measure_busy(const Workload& workload, nlohmann::json& report) {
  constexpr double kMilli = 1e3;
  const std::optional<Busy> found = busy("cuda:0", workload);
  if (!found) {
    fmt::print("  LibTorch's profiler does not see the GPU\n");
    return;
  }
  fmt::print(
      "{} rows in a microbatch, the GPU works for\n"
      "  LibTorch alone {:.3f} ms, one rank {:.3f} ms, two ranks {:.3f} ms\n",
      workload.rows,
      kMilli * found->libtorch,
      kMilli * found->one_rank,
      kMilli * found->two_ranks);
  report.push_back({{"rows", workload.rows},
                    {"libtorch_busy_seconds", found->libtorch},
                    {"one_rank_busy_seconds", found->one_rank},
                    {"two_ranks_busy_seconds", found->two_ranks}});
}

int run(const std::string& json, const std::string& command) {
  if (const auto obstacle = try_open_cuda()) {
    fmt::print("skipped: {}; {}\n", obstacle->reason, obstacle->remedy);
    return kNoGpu;
  }
  const int devices = c10::impl::VirtualGuardImpl(c10::kCUDA).deviceCount();
  const tools::GpuFacts facts = tools::gpu_facts();
  nlohmann::json report{{"hardware", bench::hardware()},
                        {"gpus", devices},
                        {"cuda", tools::cuda_version(facts.runtime)},
                        {"driver", tools::cuda_version(facts.driver)},
                        {"nccl", facts.nccl}};
  fmt::print("{}\n{} GPUs, CUDA {}, driver for CUDA {}, NCCL {}\n",
             bench::hardware(),
             devices,
             tools::cuda_version(facts.runtime),
             tools::cuda_version(facts.driver),
             facts.nccl.empty() ? "none" : facts.nccl);
  bool all = true;
  compute_alike(true);
  fmt::print("Pipelines on GPU 0, against one rank\n");
  all &= all_equal(equalities("cuda:0", Extent::All), report["equal"]);
  if (facts.nccl.empty()) {
    fmt::print("No NCCL: nothing of it is checked\n");
  } else {
    fmt::print("Processes on GPU 0 that NCCL joins, against threads\n");
    all &= all_equal(equalities_by_nccl("cuda:0", command), report["equal"]);
  }
  if (devices > 1) {
    fmt::print("Ranks on two GPUs, against one rank\n");
    all &= all_equal(equalities_between_devices("cuda", command), report["equal"]);
  }
  compute_alike(false);

  constexpr double kMicro = 1e6;
  const std::array<Workload, 2> workloads{Workload{}, Workload{.rows = 16384}};
  nlohmann::json& figures = report["figures"];
  fmt::print("Times on GPU 0\n");
  for (const Workload& workload : workloads) {
    all &= measured(workload, figures);
  }
  const double host = kMicro * host_seconds_per_instruction("cuda:0", 50);
  all &= figure(figures, "host time of an instruction", "us", host, 30.0);
  fmt::print("Work of GPU 0\n");
  for (const Workload& workload : workloads) {
    measure_busy(workload, figures);
  }
  if (!json.empty()) {
    std::ofstream file(json);
    file << tools::command_json("gpu_check", report);
    if (!file.flush()) {
      fmt::print(stderr, "gpu_check: {} cannot be written\n", json);
      return 2;
    }
  }
  return all ? 0 : 1;
}

}  // namespace
}  // namespace stagecraft::gpu

int main(int argc, char** argv) {
  CLI::App app("Checks and measures Stagecraft on this machine's GPUs", "gpu_check");
  std::string json, command = "stagecraft";
  app.add_option("--json", json, "file for the results")->type_name("FILE");
  app.add_option("COMMAND", command, "the stagecraft program")->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    constexpr int kWrongUsage = 2;
    return app.exit(error) == 0 ? 0 : kWrongUsage;
  }
  try {
    return stagecraft::gpu::run(json, command);
  } catch (const std::exception& error) {
    fmt::print(stderr, "gpu_check: {}\n", error.what());
    return 1;
  }
}
