#include "stagecraft/tools/train/job/threads.h"

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/tools/train/run/train_run.h"

namespace stagecraft::tests {

using Catch::Matchers::ContainsSubstring;

TEST_CASE("threads that can be started are started and gone again", "[tools][threads]") {
  tools::check_threads(0);
  tools::check_threads(40);
}

TEST_CASE("a run whose threads cannot be started says so and ends, forced or not",
          "[tools][threads][train]") {
#ifdef __SANITIZE_ADDRESS__
  SKIP("the address sanitizer takes terabytes of address space");
#endif
  // The stacks have 16 GB each: an address space of 64 GB holds few of them, and memory does not
  // matter.
  const std::vector<std::string> run = small_train({"--ranks", "4", "--steps", "1", "--force"});
  std::vector<std::string> words{
      "bash",
      "-c",
      "ulimit -s 16000000; ulimit -v 64000000; OMP_NUM_THREADS=1 exec \"$@\"",
      "bash"};
  words.insert(words.end(), run.begin(), run.end());
  const CommandResult result = run_command(words);
  CAPTURE(result.out, result.err);
  CHECK(result.exit_code == 1);
  CHECK_FALSE(result.timed_out);
  CHECK_THAT(result.err,
             ContainsSubstring("memory ran out when a thread was to be made: 12 are needed") &&
                 ContainsSubstring("--threads-per-worker"));
}

}  // namespace stagecraft::tests
