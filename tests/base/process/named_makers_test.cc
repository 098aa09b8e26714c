/// Tests what a program registers by name.
#include "stagecraft/base/process/named_makers.h"

#include <string>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

using Shapes = NamedMakers<int, int>;

TEST_CASE("a name finds its maker", "[base][named-makers]") {
  Shapes all({.name = "shape", .adds_by = "register_shape"});
  all.add("double", [](int side) { return 2 * side; });
  all.add("square", [](int side) { return side * side; });
  CHECK(all.at("double")(5) == 10);
  CHECK(all.at("square")(5) == 25);
  CHECK(all.missing("square").empty());
  CHECK(all.missing("circle") == refusal([&] { (void)all.at("circle"); }));
}

TEST_CASE("a wrong name is refused, with those that are known", "[base][named-makers]") {
  Shapes all({.name = "shape", .adds_by = "register_shape"});
  CHECK_THAT(refusal([&] { (void)all.at("square"); }),
             ContainsSubstring("no shape \"square\"") && ContainsSubstring("which has none") &&
                 ContainsSubstring("sc::register_shape in its main"));
  all.add("square", [](int side) { return side * side; });
  all.add("double", [](int side) { return 2 * side; });
  CHECK_THAT(refusal([&] { (void)all.at("circle"); }),
             ContainsSubstring("no shape \"circle\"") &&
                 ContainsSubstring("which has \"double\", \"square\";") &&
                 ContainsSubstring("stagecraft_base_tests on "));
  CHECK_THAT(refusal([&] { all.add("square", [](int) { return 0; }); }),
             ContainsSubstring("a shape \"square\" is registered already"));
  CHECK(all.at("square")(3) == 9);
  CHECK_THAT(refusal([&] { all.add("", [](int) { return 0; }); }),
             ContainsSubstring("found a maker for \"\""));
  CHECK_THAT(refusal([&] { all.add("empty", nullptr); }),
             ContainsSubstring("found no maker for \"empty\""));
}

}  // namespace
}  // namespace stagecraft
