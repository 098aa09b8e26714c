#include "stagecraft/base/check.h"

#include <string>

#include "stagecraft/base/error.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::EndsWith;

TEST_CASE("a failed check is an internal error that says what does not hold and where",
          "[base][check]") {
  const int slots = 3;
  CHECK_NOTHROW([&] { SC_CHECK(slots == 3, "unused"); }());
  try {
    SC_CHECK(slots == 4, "the plan asked for " + std::to_string(slots));
    FAIL("SC_CHECK let a false expression pass");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::Internal);
    CHECK_THAT(error.what(),
               ContainsSubstring("slots == 4") && ContainsSubstring("check_test.cc") &&
                   EndsWith("the plan asked for 3"));
  }
}

}  // namespace
}  // namespace stagecraft
