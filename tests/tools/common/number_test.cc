#include "stagecraft/tools/common/number.h"

#include <limits>
#include <string>

#include <CLI/CLI.hpp>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tools {
namespace {

/// Returns what the validator says; empty if it accepts the text.
std::string verdict(const CLI::Validator& validator, std::string text) {
  return validator(text);
}

TEST_CASE("a whole number is read to its last character, within its range", "[tools][options]") {
  const CLI::Validator validator = whole_number(1, 10);
  for (const char* good : {"1", "10", "007"}) {
    CHECK(verdict(validator, good).empty());
  }
  for (const char* wrong : {"0", "-1", "", " 1", "1 ", "+1", "1.0", "1e1", "0x1", "ten"}) {
    CHECK(verdict(validator, wrong) ==
          "expects a whole number from 1 to 10, found '" + std::string(wrong) + "'");
  }
  const std::string large = ", which is too large";
  CHECK(verdict(validator, "11") == "expects a whole number from 1 to 10, found '11'" + large);
  CHECK(verdict(validator, "99999999999999999999").ends_with("'" + large));
  CHECK(verdict(validator, "-99999999999999999999").ends_with("'-99999999999999999999'"));
}

TEST_CASE("without a limit a whole number is one of 32 bits", "[tools][options]") {
  CHECK(verdict(whole_number(0), "2147483647").empty());
  CHECK_FALSE(verdict(whole_number(0), "2147483648").empty());
  const CLI::Validator wide = whole_number(-5, std::numeric_limits<std::int64_t>::max());
  CHECK(verdict(wide, "-5").empty());
  CHECK(verdict(wide, "9223372036854775807").empty());
  CHECK_FALSE(verdict(wide, "9223372036854775808").empty());
}

TEST_CASE("a number of bytes becomes digits; other text is refused with the form",
          "[tools][options]") {
  std::string text = "1.5G";
  CHECK(byte_number()(text).empty());
  CHECK(text == "1610612736");
  for (const char* wrong : {"4X", "-1G", "1e30G", "0", ""}) {
    CHECK(verdict(byte_number(), wrong) ==
          "expects a number of bytes from 1 to 1024T, e.g. 512M or 4G (powers of 1024), found '" +
              std::string(wrong) + "'");
  }
}

TEST_CASE("a positive number is finite and above 0", "[tools][options]") {
  for (const char* good : {"1", "1e-9", "0.5", ".5"}) {
    CHECK(verdict(positive_number(), good).empty());
  }
  for (const char* wrong : {"0", "-1", "inf", "nan", "1e999", "", "1x", "1,5", "0e5"}) {
    CHECK(verdict(positive_number(), wrong) ==
          "expects a number greater than 0, found '" + std::string(wrong) + "'");
  }
}

TEST_CASE("a number from zero has a limit only if one is given", "[tools][options]") {
  CHECK(verdict(number_from_zero(), "0").empty());
  CHECK(verdict(number_from_zero(), "1e300").empty());
  CHECK(verdict(number_from_zero(), "-0.1") == "expects a number of at least 0, found '-0.1'");
  CHECK(verdict(number_from_zero(), "inf") == "expects a number of at least 0, found 'inf'");
  CHECK(verdict(number_from_zero(1.5), "1.49").empty());
  CHECK(verdict(number_from_zero(1.5), "1.5") ==
        "expects a number from 0 to less than 1.5, found '1.5'");
}

}  // namespace
}  // namespace stagecraft::tools
