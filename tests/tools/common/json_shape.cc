#include "stagecraft/tests/tools/common/json_shape.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <sstream>
#include <string_view>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tests {
namespace {

bool is_snake_case(std::string_view key) {
  return !key.empty() && std::islower(static_cast<unsigned char>(key.front())) != 0 &&
         std::ranges::all_of(key, [](unsigned char c) {
           return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '_';
         });
}

/// Returns the first key that is not snake_case; empty if all are.
std::string wrong_key(const nlohmann::ordered_json& value) {
  for (const auto& [key, inner] : value.items()) {
    if (value.is_object() && !is_snake_case(key)) {
      return key;
    }
    if (inner.is_structured()) {
      if (std::string found = wrong_key(inner); !found.empty()) {
        return found;
      }
    }
  }
  return "";
}

}  // namespace

std::vector<nlohmann::ordered_json> check_json_shape(const std::string& command,
                                                     const std::string& printed) {
  CAPTURE(command, printed);
  REQUIRE(printed.ends_with('\n'));
  std::vector<nlohmann::ordered_json> objects;
  std::istringstream lines(printed);
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::ordered_json object = nlohmann::ordered_json::parse(line);
    REQUIRE(object.is_object());
    REQUIRE(object.size() > 2);
    CHECK(object.begin().key() == "stagecraft");
    CHECK(object.begin().value() == command);
    CHECK(std::next(object.begin()).key() == "version");
    CHECK(std::next(object.begin()).value() == 1);
    CHECK(wrong_key(object).empty());
    objects.push_back(object);
  }
  return objects;
}

}  // namespace stagecraft::tests
