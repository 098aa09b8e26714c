#include "stagecraft/compiler/import/archive/json_place.h"

#include <cmath>
#include <string>
#include <vector>

#include "stagecraft/base/error.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft::exported {
namespace {

using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;
using nlohmann::json;

template <class Work>
std::string place_fault(Work&& work) {
  return refusal(std::forward<Work>(work), Errc::UsageFile);
}

TEST_CASE("a fault names the path to its value", "[compiler][import]") {
  const json root = json::parse(R"({"graph": {"nodes": [{"name": "a"}, {"name": 7}]}})");
  const JsonPlace place(root);
  std::vector<std::string> names;
  const JsonPlace nodes_owner = place.at("graph");
  const JsonPlace nodes = nodes_owner.at("nodes");
  CHECK(place_fault([&] {
          nodes.each([&](const JsonPlace& node) { names.push_back(node.at("name").string()); });
        }) == "at graph.nodes[1].name: expected a string, found 7");
  CHECK(names == std::vector<std::string>{"a"});
  CHECK(place_fault([&] { (void)place.at("weights"); }) ==
        "at the top: expected the key \"weights\", found none");
  CHECK(place_fault([&] { (void)nodes.at("x"); }) ==
        "at graph.nodes: expected an object, found an array with 2 elements");
  CHECK(place_fault([&] { place.each([](const JsonPlace&) {}); }) ==
        "at the top: expected an array, found an object with 1 elements");
}

TEST_CASE("a member that is absent or null is not found", "[compiler][import]") {
  const json root = json::parse(R"({"a": null, "b": 0})");
  const JsonPlace place(root);
  CHECK_FALSE(place.find("a"));
  CHECK_FALSE(place.find("c"));
  REQUIRE(place.find("b"));
  CHECK(place.find("b")->integer() == 0);
  const json list = json::array();
  CHECK_THAT(place_fault([&] { (void)JsonPlace(list).find("a"); }),
             EndsWith("expected an object, found an array with 0 elements"));
}

TEST_CASE("a union has one member", "[compiler][import]") {
  const auto taken = [](const char* text) {
    const json root = json::parse(text);
    std::string all;
    JsonPlace(root).alternative([&](const std::string& key, const JsonPlace& value) {
      all += key + std::to_string(value.integer());
    });
    return all;
  };
  CHECK(taken(R"({"as_int": 3})") == "as_int3");
  for (const char* wrong : {"{}", R"({"a": 1, "b": 2})", "[1]", "null"}) {
    CAPTURE(wrong);
    CHECK_THAT(place_fault([&] { (void)taken(wrong); }),
               StartsWith("at the top: expected an object with one key, found "));
  }
}

TEST_CASE("an integer is one of 64 bits", "[compiler][import]") {
  const auto integer = [](const char* text) {
    const json root = json::parse(text);
    return JsonPlace(root).integer();
  };
  CHECK(integer("9223372036854775807") == 9223372036854775807);
  CHECK(integer("-9223372036854775808") == std::numeric_limits<std::int64_t>::min());
  for (const char* wrong : {"9223372036854775808", "1.0", "1e3", "\"1\"", "true", "null"}) {
    CAPTURE(wrong);
    CHECK_THAT(place_fault([&] { (void)integer(wrong); }),
               EndsWith("expected an integer of 64 bits, found " + json::parse(wrong).dump()));
  }
}

TEST_CASE("numbers may be infinite or undefined, by the words of JSON texts",
          "[compiler][import]") {
  const auto number = [](const char* text) {
    const json root = json::parse(text);
    return JsonPlace(root).number();
  };
  CHECK(number("2") == 2);
  CHECK(number("-0.5") == -0.5);
  CHECK(number("\"Infinity\"") == HUGE_VAL);
  CHECK(number("\"-Infinity\"") == -HUGE_VAL);
  CHECK(std::isnan(number("\"NaN\"")));
  CHECK_THAT(place_fault([&] { (void)number("\"inf\""); }), EndsWith("found \"inf\""));
  const json yes = true;
  CHECK(JsonPlace(yes).boolean());
  const json one = 1;
  CHECK_THAT(place_fault([&] { (void)JsonPlace(one).boolean(); }),
             EndsWith("expected true or false, found 1"));
}

TEST_CASE("a message has the beginning of a long text, and any bytes", "[compiler][import]") {
  const json longest = std::string(100, 'a');
  CHECK(place_fault([&] { (void)JsonPlace(longest).integer(); }) ==
        "at the top: expected an integer of 64 bits, found \"" + std::string(59, 'a') + "...");
  const json bytes = "\xff";
  CHECK_THAT(place_fault([&] { (void)JsonPlace(bytes).integer(); }),
             EndsWith("found \"\xEF\xBF\xBD\""));
}

}  // namespace
}  // namespace stagecraft::exported
