/// Tests `stagecraft schedule diff`: schedules that are equal, and the files that it needs.

#include <nlohmann/json.hpp>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/tools/schedule/schedule_run.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

constexpr const char* kDiffed =
    "0F0 0F1 .   0B0 .   0B1\n"
    ".   1F0 1B0 1F1 1B1 .\n";

}  // namespace

TEST_CASE("equal schedules are equal, whatever their form and columns", "[tools][schedule][diff]") {
  const TemporaryFolder folder;
  const std::string a = folder.write("a", kDiffed);
  const std::string list =
      folder.write("b", run_schedule({"convert", "-", "--to", "list"}, kDiffed).out);
  const std::string wide = folder.write("c", "0F0 0F1 . . 0B0 . 0B1\n. 1F0 . 1B0 1F1 1B1 .\n");
  const CommandResult same = run_schedule({"diff", a, "-"}, kDiffed);
  CHECK(same.exit_code == 0);
  CHECK(same.out == "equal: 2 devices, 2 stages, 2 microbatches\n");
  for (const std::string& b : {list, wide}) {
    const CommandResult result = run_schedule({"diff", a, b});
    CHECK(result.exit_code == 0);
    CHECK_THAT(result.out, ContainsSubstring("only columns differ"));
  }
}

TEST_CASE("JSON names the files as they were given", "[tools][schedule][diff][json]") {
  const TemporaryFolder folder;
  const std::string a = folder.write("it's.txt", kDiffed);
  const auto answer = nlohmann::json::parse(run_schedule({"diff", a, "-", "--json"}, kDiffed).out);
  CHECK(answer.at("a").at("file") == a);
  CHECK(answer.at("b").at("file") == "-");
}

TEST_CASE("diff needs two readable files", "[tools][schedule][diff][bad-input]") {
  check_message(run_schedule({"diff", "-"}, kDiffed), 2, {"expected B"});
  check_message(run_schedule({"diff", "-", "-"}, kDiffed), 2, {"standard input", "once"});
  check_message(run_schedule({"diff", "-", "/none"}, kDiffed), 2, {"'/none'"});
}

}  // namespace stagecraft::tests
