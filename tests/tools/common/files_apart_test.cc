/// Tests that no command overwrites a file that it reads, also behind a link, and that one may
/// where its user means to.

#include "stagecraft/tools/common/files_apart.h"

#include <filesystem>

#include "stagecraft/base/error.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"
#include "stagecraft/tests/tools/schedule/schedule_run.h"
#include "stagecraft/tools/dag/dag.h"
#include "stagecraft/tools/plan/plan.h"

namespace stagecraft::tests {
namespace {

constexpr const char* kPrecious = "0F0   0B0\n";

TEST_CASE("no command overwrites what it reads", "[tools][bad-input]") {
  const TemporaryFolder folder;
  const std::string file = folder.write("mine.txt", kPrecious);
  const std::string link = folder.path() + "/link.svg";
  std::filesystem::create_symlink("mine.txt", link);
  const auto lost = [&](const CommandResult& result, const std::vector<std::string>& parts) {
    check_message(result, 2, parts);
    CHECK(read_text_file(file) == kPrecious);
  };
  for (const char* option : {"--svg", "--tikz", "--pdf", "--png", "--html"}) {
    lost(run_schedule({"show", file, option, file}),
         {std::string(option) + " and FILES name one file, '" + file + "', which would be lost"});
  }
  lost(run_schedule({"show", file, "--svg", link}), {"--svg and FILES"});
  lost(run_schedule({"show", "-", "--costs", file, "--svg", file}, kPrecious),
       {"--svg and --costs"});
  lost(run_schedule({"convert", file, "--to", "json", "-o", file}), {"--output and FILE"});
  lost(run_schedule({"fix", file, "-o", file}), {"--output and FILE"});
  lost(run_schedule({"fmt", "-", "--graph", "@" + file, "-o", file}, kPrecious),
       {"--output and --graph"});
  lost(run_schedule({"compare", file, "--html", file}), {"--html and NAMES"});
  lost(run_in_test(&tools::dag, {"show", file, "--html", file}, ""), {"--html and FILE"});
  lost(run_in_test(&tools::dag, {"convert", file, "--to", "piper", "-o", file}, ""),
       {"--output and FILE"});
  lost(run_in_test(&tools::plan, {file, "--devices", "2", "--cut-out", file}, ""),
       {"--cut-out and COSTS"});
  lost(run_in_test(
           &tools::plan, {"none", "--devices", "2", "--cut-out", file, "--schedule-out", link}, ""),
       {"--cut-out and --schedule-out"});
}

TEST_CASE("fmt may write over its file, and a stream overwrites nothing", "[tools]") {
  const TemporaryFolder folder;
  const std::string file = folder.write("mine.txt", kPrecious);
  CHECK(run_schedule({"fmt", file, "-o", file}).exit_code == 0);
  CHECK(read_text_file(file) == "0F0 0B0\n");
  CHECK(run_schedule({"show", file, "--svg", "/dev/null"}).exit_code == 0);
  CHECK(run_schedule({"show", file, "--svg", "-"}).exit_code == 0);
}

TEST_CASE("outputs are told apart also before they exist", "[tools][bad-input]") {
  const TemporaryFolder folder;
  const std::string here = folder.path() + "/new";
  const std::string there = folder.path() + "/./new";
  const auto refused = [&](const std::vector<tools::NamedFile>& outputs) {
    return refusal(
        [&] {
          tools::check_all_apart({{"IN", ""}, {"IN", "-"}}, outputs);
        },
        Errc::UsageFile);
  };
  CHECK_THAT(refused({{"--a", here}, {"--b", there}}),
             Catch::Matchers::ContainsSubstring("--b and --a name one file"));
  CHECK_NOTHROW(tools::check_all_apart({}, {{"--a", "-"}, {"--b", "-"}, {"--c", ""}}));
}

}  // namespace
}  // namespace stagecraft::tests
