#include "stagecraft/scheduler/builders/parts/build_request.h"

#include <vector>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

TEST_CASE("parameters are read as the builder needs them", "[scheduler][builders]") {
  const BuildRequest request{
      .set = {{"k", "-3"}, {"yes", "1"}, {"extra", "2,1,0"}, {"f", "1.5,2"}}};
  CHECK(request.number("k", 7) == -3);
  CHECK(request.flag("yes"));
  CHECK(request.numbers("extra") == std::vector{2, 1, 0});
  CHECK(request.times("f") == std::vector<double>{1.5, 2});
  CHECK(request.times("extra") == std::vector<double>{2, 1, 0});
}

TEST_CASE("a parameter that is not set has its fallback", "[scheduler][builders]") {
  const BuildRequest request;
  CHECK(request.number("k", 7) == 7);
  CHECK_FALSE(request.flag("yes"));
  CHECK(request.numbers("extra").empty());
  CHECK(request.times("f").empty());
}

TEST_CASE("a word that is no number is refused with the name of its parameter",
          "[scheduler][builders][bad-input]") {
  for (const char* word : {"", "x", "1x", " 1", "1.5", "99999999999", "1,2"}) {
    CAPTURE(word);
    const BuildRequest request{.set = {{"k", word}}};
    CHECK_THAT(refusal([&] { (void)request.number("k", 1); }, Errc::UsageArgument),
               ContainsSubstring("parameter k needs a whole number"));
  }
  for (const char* word : {"-1", "1,-1", "nan", "inf", "1e999", "1,,2", "one"}) {
    CAPTURE(word);
    const BuildRequest request{.set = {{"f", word}}};
    CHECK_THAT(refusal([&] { (void)request.times("f"); }, Errc::UsageArgument),
               ContainsSubstring("parameter f needs a number of at least 0"));
  }
  CHECK_THAT(refusal(
                 [] {
                   (void)BuildRequest{.set = {{"yes", "2"}}}.flag("yes");
                 },
                 Errc::UsageArgument),
             ContainsSubstring("parameter yes needs 0 or 1, got 2"));
}

}  // namespace
}  // namespace stagecraft
