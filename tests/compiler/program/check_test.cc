/// Tests the check whether a schedule may run a program, which is made before anything runs.
#include "stagecraft/compiler/program/check.h"

#include <torch/torch.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/compile.h"
#include "stagecraft/scheduler/builders/bidirectional/chimera.h"
#include "stagecraft/scheduler/builders/bidirectional/dualpipe.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/modules.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

Program checked_chain(int stages, int microbatches) {
  testing::Chain chain(stages);
  const auto x = torch::randn({microbatches, 8});
  return compile(
      chain,
      {.inputs = {x}, .labels = {x}, .loss = testing::mean_square, .microbatches = microbatches});
}

TEST_CASE("a schedule that runs the program has no violations and a grid", "[compiler][check]") {
  const Program program = checked_chain(2, 4);
  const CheckResult result = check(program, one_f_one_b(2, 4));
  CHECK(result.ok());
  CHECK(result.notes.empty());
  CHECK_THAT(result.grid, ContainsSubstring("0F3"));
  CHECK_NOTHROW(result.or_throw());
}

TEST_CASE("a schedule of other microbatches or stages is refused with the grid",
          "[compiler][check]") {
  const Program program = checked_chain(2, 4);
  const Schedule other = GENERATE(one_f_one_b(2, 3), one_f_one_b(3, 4));
  const CheckResult result = check(program, other);
  CHECK_FALSE(result.ok());
  CHECK_THAT(refusal([&] { result.or_throw(); }, Errc::ScheduleInvalid),
             ContainsSubstring(result.grid) && ContainsSubstring(result.violations[0].rule));
}

TEST_CASE("a schedule whose replicas do not fit the program is refused", "[compiler][check]") {
  const Program program = checked_chain(2, 4);
  const CheckResult stages = check(program, chimera(4, 4));
  REQUIRE(stages.violations.size() == 1);
  CHECK(stages.violations[0].rule == "V32");
  CHECK_THAT(stages.violations[0].message, ContainsSubstring("2 replicas of 4 stages"));
  CHECK_FALSE(check(program, dualpipe(2, 8)).ok());
  CHECK(check(program, chimera(2, 4)).ok());
  const CheckResult divided = check(checked_chain(2, 3), chimera(2, 4));
  REQUIRE(divided.violations.size() == 1);
  CHECK_THAT(divided.violations[0].message,
             ContainsSubstring("3 microbatches cannot be divided over 2 copies"));
}

}  // namespace
}  // namespace stagecraft
