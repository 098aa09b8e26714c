#include "stagecraft/scheduler/accumulation.h"

#include "stagecraft/scheduler/builders/chimera.h"
#include "stagecraft/scheduler/builders/gpipe.h"
#include "stagecraft/scheduler/builders/zb_v.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

TEST_CASE("schedules that take backwards in order keep the sums of one process",
          "[scheduler][accumulation]") {
  CHECK_FALSE(reordered_accumulation(gpipe(4, 8)).has_value());
  CHECK_FALSE(reordered_accumulation(zb_v(4, 8)).has_value());
}

TEST_CASE("newest first changes the sums, and the first stage to do so is named",
          "[scheduler][accumulation]") {
  const auto why = reordered_accumulation(gpipe(4, 8, {.reverse_backward = true}));
  REQUIRE(why.has_value());
  CHECK_THAT(*why, ContainsSubstring("stage 0 adds microbatch 5 after microbatch 7"));
}

TEST_CASE("of a split backward the weight half decides", "[scheduler][accumulation]") {
  const std::string forwards = "@form list\n0F0 0F1 0F2 ";
  CHECK_FALSE(reordered_accumulation(Schedule::parse(forwards + "0I2 0I1 0I0 0W0 0W1 0W2\n")));
  CHECK(reordered_accumulation(Schedule::parse(forwards + "0I0 0I1 0I2 0W2 0W1 0W0\n")));
}

TEST_CASE("a sum of two is the same either way, one of three is not",
          "[scheduler][accumulation]") {
  CHECK_FALSE(reordered_accumulation(Schedule::parse("0F0 0F1 0F2 0B1 0B0 0B2\n")));
  CHECK(reordered_accumulation(Schedule::parse("0F0 0F1 0F2 0B2 0B0 0B1\n")));
}

TEST_CASE("two replicas add up shares", "[scheduler][accumulation]") {
  const auto why = reordered_accumulation(chimera(4, 8));
  REQUIRE(why.has_value());
  CHECK_THAT(*why, ContainsSubstring("2 replicas"));
}

}  // namespace
}  // namespace stagecraft
