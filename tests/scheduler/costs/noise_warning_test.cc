#include "stagecraft/scheduler/costs/noise_warning.h"

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

TEST_CASE("noise beyond the limit makes a warning with both figures", "[scheduler][planners]") {
  CHECK_FALSE(noise_warning(0));
  CHECK_FALSE(noise_warning(kMostNoise));
  const auto warning = noise_warning(2.61);
  REQUIRE(warning);
  CHECK_THAT(*warning,
             Catch::Matchers::ContainsSubstring("261 %") &&
                 Catch::Matchers::ContainsSubstring("at most 20 %") &&
                 Catch::Matchers::ContainsSubstring("profile again"));
  CHECK_FALSE(noise_warning(2.61, 3));
}

}  // namespace
}  // namespace stagecraft
