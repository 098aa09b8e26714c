/// Tests a run of `stagecraft train --serve` as those who watch it see it.

#include <algorithm>
#include <filesystem>
#include <regex>
#include <string>

#include <nlohmann/json.hpp>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/eventually.h"
#include "stagecraft/tests/tools/train/run/train_run.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

/// Returns the link that a run has printed.
std::string link_in(const std::string& output) {
  std::smatch found;
  REQUIRE(std::regex_search(
      output, found, std::regex(R"(http://127\.0\.0\.1:\d+/\?token=[0-9a-f]{32})")));
  return found[0];
}

CommandResult ask(const std::vector<std::string>& words) {
  std::vector<std::string> all{STAGECRAFT_COMMAND};
  all.insert(all.end(), words.begin(), words.end());
  return run_command(all);
}

}  // namespace

TEST_CASE("a run is watched, takes a checkpoint when asked, and stops when asked",
          "[tools][watch]") {
  const TemporaryFolder folder;
  const std::string log = folder.path() + "/log";
  std::vector<std::string> words = small_train({"--stages",
                                                "2",
                                                "--steps",
                                                "1000000000",
                                                "--serve",
                                                "--json",
                                                "--save-dir",
                                                folder.path() + "/saved"});
  std::string line = "exec";
  for (const std::string& word : words) {
    line += " '" + word + "'";
  }
  RunningCommand run({"sh", "-c", line + " > '" + log + "'"});
  REQUIRE(eventually([&] {
    return std::filesystem::exists(log) &&
           read_text_file(log).find("\"event\":\"step\"") != std::string::npos;
  }));
  const std::string link = link_in(read_text_file(log));

  const CommandResult status = ask({"status", link});
  CHECK(status.exit_code == 0);
  CHECK_THAT(status.out, ContainsSubstring("running: step"));
  const CommandResult whole = ask({"status", "--json", link});
  REQUIRE(whole.exit_code == 0);
  const auto state = nlohmann::json::parse(whole.out);
  CHECK(state["stagecraft"] == "watch");
  CHECK(state["ranks"].size() == 2);
  CHECK(state["ranks"][0]["billed_bytes"] > 0);
  CHECK(state["timeline"]["rows"].size() == 2);
  CHECK(state["curve"]["loss"].size() > 0);
  CHECK_THAT(ask({"watch", "--once", link}).out,
             ContainsSubstring("rank") && ContainsSubstring("waits"));

  const std::string wrong = link.substr(0, link.size() - 1) + (link.back() == '0' ? '1' : '0');
  const CommandResult refused = ask({"stop", wrong});
  CHECK(refused.exit_code == 2);
  CHECK_THAT(refused.err, ContainsSubstring("refuses this link"));

  CHECK(ask({"checkpoint", link}).exit_code == 0);
  CHECK(eventually([&] {
    return !nlohmann::json::parse(ask({"status", "--json", link}).out)["checkpoints"].empty();
  }));
  CHECK(ask({"stop", link}).exit_code == 0);
  const CommandResult end = run.wait();
  CHECK(end.exit_code == 0);
  CHECK_THAT(read_text_file(log), ContainsSubstring("\"event\":\"stopped\""));
  const CommandResult gone = ask({"status", link});
  CHECK(gone.exit_code == 2);
  CHECK_THAT(gone.err, ContainsSubstring("nobody answers"));
}

TEST_CASE("an address that others reach, and a text that is no link, are refused",
          "[tools][watch]") {
  const CommandResult train = run_train({"--serve", "0.0.0.0:0"});
  CHECK(train.exit_code == 2);
  CHECK_THAT(train.err, ContainsSubstring("no TLS"));
  for (const char* command : {"watch", "status", "stop", "checkpoint"}) {
    CAPTURE(command);
    const CommandResult result = ask({command, "http://example.org/"});
    CHECK(result.exit_code == 2);
    CHECK_THAT(result.err, ContainsSubstring("expected the link of a run"));
  }
}

}  // namespace stagecraft::tests
