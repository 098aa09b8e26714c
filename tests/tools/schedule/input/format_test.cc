#include "stagecraft/tools/schedule/input/format.h"

#include <string>

#include <fmt/format.h>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"
#include "stagecraft/tests/tools/schedule/schedule_run.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

TEST_CASE("list, help and options name every format of the registry", "[tools][schedule]") {
  const std::string list = run_schedule({"list"}).out;
  const std::string convert = run_schedule({"convert", "--help"}).out;
  const std::string check = run_schedule({"check", "--help"}).out;
  for (const ScheduleFormat& format : schedule_formats()) {
    const std::string line = fmt::format("  {:<14}  {}\n", format.name, format.summary);
    CHECK_THAT(list, ContainsSubstring(line));
    CHECK_THAT(convert, ContainsSubstring(line));
    CHECK_THAT(check, ContainsSubstring(std::string(format.name)));
  }
}

TEST_CASE("the names of the formats are one list, with a last alternative", "[tools][schedule]") {
  const std::string names = tools::format_names();
  CHECK(names.starts_with("text, list, json, "));
  CHECK(names.ends_with(fmt::format(" or {}", schedule_formats().back().name)));
  CHECK(names.find(" or ") == names.rfind(" or "));
}

TEST_CASE("an unknown format is answered with the nearest and the command's own help",
          "[tools][schedule][bad-input]") {
  check_message(run_schedule_line("make 1f1b --devices 2 --microbatches 2 --format jsn"),
                2,
                {"did you mean json?", "see stagecraft schedule make --help"});
  check_message(run_schedule({"check", "-", "--from", "jsn"}, "0F0 0B0\n"),
                2,
                {"did you mean json?", "see stagecraft schedule check --help"});
}

TEST_CASE("a format is named whole and in its own case", "[tools][schedule][bad-input]") {
  const auto format_named = [](const char* name) {
    return tools::format_of("stagecraft schedule convert", "--to", name).name;
  };
  CHECK(format_named("zero-bubble") == "zero-bubble");
  for (const char* wrong : {"", "JSON", "json ", "pytorch-comm"}) {
    CAPTURE(wrong);
    CHECK_THAT(refusal([&] { (void)format_named(wrong); }),
               ContainsSubstring("--to expects a format: ") &&
                   ContainsSubstring(fmt::format("'{}'", wrong)) &&
                   ContainsSubstring("; see stagecraft schedule convert --help"));
  }
}

}  // namespace
}  // namespace stagecraft::tests
