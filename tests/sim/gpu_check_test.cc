/// Runs what is checked and measured on GPUs on a simulated device.
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "stagecraft/tests/gpu/equality.h"
#include "stagecraft/tests/gpu/measures.h"
#include "stagecraft/tests/sim/sim_devices.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tools/runtime_commands.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

void check_all_equal(const std::vector<gpu::Equality>& found) {
  CHECK(found.size() == 7);
  for (const gpu::Equality& one : found) {
    CAPTURE(one.name);
    CHECK(one.problem == "");
  }
}

TEST_CASE("the check of GPUs finds equal results on a device", "[sim]") {
  const SimDevices devices({.at_once = true});
  check_all_equal(gpu::equalities("sim:0", gpu::Extent::Some));
}

TEST_CASE("the check of GPUs says what is not equal", "[sim]") {
  const gpu::Trained alone{.losses = {2.0, 1.0}, .weights = "ab"};
  CHECK(gpu::different_bits(alone, alone).empty());
  CHECK_THAT(gpu::different_bits({.losses = {2.0, 1.0}, .weights = "cd"}, alone),
             ContainsSubstring("other bits"));
  const gpu::Trained near{.losses = {2.0, 1.0001}, .weights = "ab"};
  CHECK_THAT(gpu::different_bits(near, alone), ContainsSubstring("the loss of step 2 is 1.0001"));
  CHECK(gpu::different_losses(near, alone, 1e-3).empty());
  CHECK_FALSE(gpu::different_losses(near, alone, 1e-5).empty());
  const double none = std::numeric_limits<double>::quiet_NaN();
  CHECK_FALSE(gpu::different_losses({.losses = {2.0, none}, .weights = ""}, alone, 1.0).empty());
  CHECK_FALSE(gpu::different_losses({.losses = {2.0}, .weights = ""}, alone, 1.0).empty());
  CHECK_THROWS_WITH(gpu::read_trained(R"({"event":"step","loss":1.0})"),
                    ContainsSubstring("the run has no end"));
}

TEST_CASE("the check of GPUs says what fails", "[sim][bad-input]") {
  const SimDevices devices;
  const std::vector<gpu::Equality> found = gpu::equalities("sim:9", gpu::Extent::Some);
  CHECK(found.size() == 7);
  for (const gpu::Equality& one : found) {
    CAPTURE(one.name);
    CHECK(one.name != "");
    CHECK_THAT(one.problem, ContainsSubstring("has 4 of these"));
  }
}

TEST_CASE("the check of GPUs sees processes that do without NCCL", "[sim][bad-input]") {
  const std::vector<gpu::Equality> found = gpu::equalities_by_nccl("cpu", STAGECRAFT_COMMAND);
  CHECK(found.size() == 5);
  for (const gpu::Equality& one : found) {
    CAPTURE(one.name);
    CHECK(one.problem == "the ranks did without NCCL");
  }
}

TEST_CASE("a model that does not fit onto the devices is refused before it is trained",
          "[sim][bad-input]") {
  const SimDevices devices({.memory = 65536});
  std::istringstream in;
  std::ostringstream out, err;
  tools::Console console{.in = in, .out = out, .err = err};
  CHECK(tools::run_runtime_command({"train", "--device", "sim", "--ranks", "2", "--steps", "1"},
                                   console) == tools::ExitCode::Failed);
  CHECK_THAT(err.str(),
             ContainsSubstring("memory does not suffice: ") &&
                 ContainsSubstring("128.0 KiB left by 2 GPUs"));
}

TEST_CASE("a planner stays within the memory of the devices", "[sim][plan]") {
  const auto planned = [](std::size_t memory) {
    const SimDevices devices({.memory = memory});
    std::istringstream in;
    std::ostringstream out, err;
    tools::Console console{.in = in, .out = out, .err = err};
    (void)tools::run_runtime_command({"train",
                                      "--device",
                                      "sim",
                                      "--ranks",
                                      "2",
                                      "--plan",
                                      "auto",
                                      "--layers",
                                      "2",
                                      "--dry-run"},
                                     console);
    return out.str() + err.str();
  };
  CHECK_THAT(planned(std::size_t{1} << 30U),
             ContainsSubstring("plans for 1.0 GiB on each rank's GPU") &&
                 !ContainsSubstring("no plan fits"));
  CHECK_THAT(
      planned(65536),
      ContainsSubstring("no plan fits the devices") && ContainsSubstring("may hold 53.3 KiB"));
}

TEST_CASE("the measures of GPUs are taken on a device, beside LibTorch alone", "[sim]") {
  const SimDevices devices;
  const gpu::Workload small{
      .layers = 2, .width = 8, .rows = 4, .microbatches = 4, .dtype = c10::kFloat, .steps = 2};
  const gpu::Measures found = gpu::measure("sim:0", small);
  CHECK(found.libtorch_seconds > 0.0);
  CHECK(found.one_rank_seconds > 0.0);
  CHECK(found.two_ranks_seconds > 0.0);
  CHECK(found.launch_gaps_part >= 0.0);
  CHECK(found.launch_gaps_part < 1.0);
  CHECK(found.loss_differs_part < 1e-6);
  CHECK(found.billed_bytes > 0);
  CHECK(found.peak_bytes > 0);
  CHECK_FALSE(gpu::busy("sim:0", small));  // the profiler knows GPUs only
}

}  // namespace
}  // namespace stagecraft::tests
