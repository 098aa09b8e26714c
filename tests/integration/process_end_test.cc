/// Checks that a program ends as it intended, regardless of what runs when it ends.
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"

namespace stagecraft::tests {
namespace {

TEST_CASE("a program ends with its own status and handlers, whatever its ranks are doing",
          "[integration][process-end]") {
  const auto* scenario = GENERATE("leaked",
                                  "leaked-busy",
                                  "left-behind",
                                  "static-trainer",
                                  "static-trainer-without-steps",
                                  "static-trainer-busy",
                                  "inside-a-long-instruction",
                                  "exit-on-a-rank",
                                  "exit-elsewhere-in-steps",
                                  "exit-elsewhere-in-unread-steps",
                                  "exit-elsewhere-in-evaluations",
                                  "exit-elsewhere-in-reads");
  CAPTURE(scenario);
  for (int repetition = 0; repetition < 3; ++repetition) {
    const CommandResult result = run_command({STAGECRAFT_ENDS, scenario});
    CAPTURE(repetition, result.out, result.err);
    CHECK_FALSE(result.timed_out);
    CHECK(result.exit_code == 7);
    CHECK(result.out == "handler ran\n");
  }
}

TEST_CASE("a child of fork() is refused by its parent's trainer, which continues",
          "[integration][process-end]") {
  const CommandResult result = run_command({STAGECRAFT_ENDS, "forked"});
  CAPTURE(result.out, result.err);
  CHECK_FALSE(result.timed_out);
  CHECK(result.exit_code == 7);
}

TEST_CASE("children of fork() train with trainers of their own, whatever the parent did before",
          "[integration][process-end]") {
  const auto* scenario = GENERATE("trained-in-children-alone", "trained-in-children-too");
  CAPTURE(scenario);
  const CommandResult result = run_command({STAGECRAFT_ENDS, scenario});
  CAPTURE(result.out, result.err);
  CHECK_FALSE(result.timed_out);
  CHECK(result.exit_code == 7);
}

}  // namespace
}  // namespace stagecraft::tests
