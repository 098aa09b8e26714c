#include "stagecraft/base/split.h"

#include <string_view>
#include <vector>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Parts = std::vector<std::string_view>;

TEST_CASE("a text has one part more than separators, empty parts included", "[base][split]") {
  CHECK(split("layers.3.weight", '.') == Parts{"layers", "3", "weight"});
  CHECK(split("layers", '.') == Parts{"layers"});
  CHECK(split(",a,,b,", ',') == Parts{"", "a", "", "b", ""});
  CHECK(split("", ',') == Parts{""});
  CHECK(split(",", ',') == Parts{"", ""});
}

TEST_CASE("parts are views of the text", "[base][split]") {
  const std::string_view text = "a,b";
  CHECK(split(text, ',')[1].data() == text.data() + 2);
}

}  // namespace
}  // namespace stagecraft
