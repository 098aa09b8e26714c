/// Tests the option --device, as far as a machine without a GPU takes it.
#include <filesystem>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/environment_variable.h"
#include "stagecraft/tests/tools/train/run/train_run.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

TEST_CASE("a run on GPUs says what this machine lacks", "[tools][train][device]") {
  if (std::filesystem::exists("/dev/nvidiactl")) {
    SKIP("this machine has an NVIDIA driver, so it lacks none");
  }
  const auto* workers = GENERATE("threads", "processes");
  const auto* local_ranks = GENERATE("0", "1");  // the first rank is then a thread of the driver
  const EnvironmentVariable local("STAGECRAFT_LOCAL_RANKS", local_ranks);
  const CommandResult result = run_command(
      small_train({"--stages", "2", "--steps", "1", "--workers", workers, "--device", "cuda"}));
  CAPTURE(workers, local_ranks, result.out, result.err);
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.err,
             ContainsSubstring("--device is cuda, and this process cannot use it: ") &&
                 !ContainsSubstring("already asked") && !ContainsSubstring("frame #"));
}

TEST_CASE("a device that does not exist, or has no limit of memory, is wrong usage",
          "[tools][train][device][bad-input]") {
  const CommandResult unknown = run_train({"--stages", "2", "--device", "quantum"});
  CAPTURE(unknown.err);
  CHECK(unknown.exit_code == 2);
  CHECK_THAT(unknown.err,
             ContainsSubstring("--device expects cpu, cuda, cuda:N or another accelerator's name, "
                               "found \"quantum\"; see stagecraft train --help"));
  const CommandResult limited =
      run_train({"--stages", "2", "--device", "cuda", "--memory-limit", "64M"});
  CAPTURE(limited.err);
  CHECK(limited.exit_code == 2);
  CHECK_THAT(limited.err, ContainsSubstring("--memory-limit expects --device cpu"));
  const CommandResult verified = run_train({"--stages", "2", "--device", "cuda", "--verify"});
  CAPTURE(verified.err);
  CHECK(verified.exit_code == 2);
  CHECK_THAT(verified.err, ContainsSubstring("--verify expects --device cpu"));
}

}  // namespace
}  // namespace stagecraft::tests
