#include "stagecraft/tools/doctor/facts/gpu_facts.h"

#include <filesystem>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tools {
namespace {

using Catch::Matchers::ContainsSubstring;

TEST_CASE("a version of CUDA is read from its number", "[tools][doctor]") {
  CHECK(cuda_version(13000) == "13.0");
  CHECK(cuda_version(12080) == "12.8");
  CHECK(cuda_version(11020) == "11.2");
  CHECK(cuda_version(9100) == "9.10");
}

TEST_CASE("a machine without a driver has no GPU, and the remedy is said", "[tools][doctor]") {
  if (std::filesystem::exists("/dev/nvidiactl")) {
    SKIP("this machine has an NVIDIA driver, so it lacks none");
  }
  const GpuFacts facts = gpu_facts();
  CHECK(facts.missing == "no NVIDIA driver is installed");
  CHECK_THAT(facts.remedy, ContainsSubstring("--gpus all"));
  CHECK(facts.driver == 0);
  CHECK(facts.visible == 0);
}

}  // namespace
}  // namespace stagecraft::tools
