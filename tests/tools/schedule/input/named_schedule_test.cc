#include "stagecraft/tools/schedule/input/named_schedule.h"

#include <string>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft::tools {
namespace {

using Catch::Matchers::ContainsSubstring;

/// Returns the message for a word that is neither a schedule nor a file.
std::string message_for(const std::string& word, Errc code) {
  return refusal([&] { require_schedule_file("stagecraft plan", "--schedule", word); }, code);
}

TEST_CASE("a builder is found by its whole name alone", "[tools][schedule]") {
  REQUIRE(builder_named("zb-h1") != nullptr);
  CHECK(builder_named("zb-h1")->name == "zb-h1");
  for (const char* other : {"", "zb", "ZB-H1", "zb-h1 ", "all"}) {
    CAPTURE(other);
    CHECK(builder_named(other) == nullptr);
  }
}

TEST_CASE("a file and standard input are taken without being read", "[tools][schedule]") {
  const tests::TemporaryFolder folder;
  CHECK_NOTHROW(require_schedule_file("c", "--schedule", folder.write("1f1v", "no schedule")));
  CHECK_NOTHROW(require_schedule_file("c", "--schedule", "-"));
}

TEST_CASE("a word like a name is a mistyped one, and a path is a missing file",
          "[tools][schedule][bad-input]") {
  const std::string mistyped = message_for("1f1v", Errc::UsageArgument);
  CHECK_THAT(
      mistyped,
      ContainsSubstring("--schedule expects a readable schedule file or one of gpipe, 1f1b,") &&
          ContainsSubstring("found '1f1v'; did you mean 1f1b?"));
  CHECK(mistyped.ends_with("see stagecraft plan --help"));
  for (const char* path : {"/none/1f1b", "./1f1b", "own.sched"}) {
    CHECK_THAT(message_for(path, Errc::UsageFile),
               ContainsSubstring("found '" + std::string(path) + "'; "));
  }
  CHECK_THAT(message_for("", Errc::UsageArgument), ContainsSubstring("found ''"));
}

}  // namespace
}  // namespace stagecraft::tools
