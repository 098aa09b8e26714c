/// Tests a run of `stagecraft train --serve` as those who watch it see it.

#include <algorithm>
#include <filesystem>
#include <regex>
#include <string>

#include <nlohmann/json.hpp>

#include "stagecraft/base/process/host_name.h"
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

/// ServedRun is a run of `train` that does not end by itself. It has made a step.
class ServedRun {
 public:
  explicit ServedRun(const std::vector<std::string>& more)
      : log_(folder_.path() + "/log"), run_(words_of(more, log_)) {
    REQUIRE(eventually([&] {
      return std::filesystem::exists(log_) &&
             output().find("\"event\":\"step\"") != std::string::npos;
    }));
  }

  [[nodiscard]] std::string output() const { return read_text_file(log_); }
  CommandResult wait() { return run_.wait(); }

 private:
  static std::vector<std::string> words_of(const std::vector<std::string>& more,
                                           const std::string& log) {
    std::vector<std::string> words{"--stages", "2", "--steps", "1000000000", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    std::string line = "exec";
    for (const std::string& word : small_train(words)) {
      line += " '" + word + "'";
    }
    return {"sh", "-c", line + " > '" + log + "'"};
  }

  const TemporaryFolder folder_;
  const std::string log_;
  RunningCommand run_;
};

}  // namespace

TEST_CASE("a run is watched, takes a checkpoint when asked, and stops when asked",
          "[tools][watch]") {
  const TemporaryFolder folder;
  ServedRun run({"--serve", "--save-dir", folder.path() + "/saved"});
  const std::string link = link_in(run.output());

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
  CHECK_THAT(run.output(), ContainsSubstring("\"event\":\"stopped\""));
  const CommandResult gone = ask({"status", link});
  CHECK(gone.exit_code == 2);
  CHECK_THAT(gone.err, ContainsSubstring("nobody answers"));
}

TEST_CASE("a run at an address that others reach is asked by TLS, with the certificate of its link",
          "[tools][watch]") {
  ServedRun run({"--serve", "0.0.0.0:0"});
  std::smatch parts;
  const std::string text = run.output();
  REQUIRE(std::regex_search(
      text,
      parts,
      std::regex(
          R"re("link":"https://([^"]+):(\d+)(/\?token=[0-9a-f]{32}#sha256=)([0-9A-F:]{95}))re"
          R"re(","certificate":"([0-9A-F:]{95})")re")));
  CHECK(parts[1] == host_name());
  CHECK(parts[4] == parts[5]);
  // The name need not be known here, and the certificate counts, not the name.
  const std::string place = "https://127.0.0.1:" + parts[2].str();
  const std::string link = place + parts[3].str() + parts[4].str();
  CHECK_THAT(ask({"status", link}).out, ContainsSubstring("running: step"));

  std::string wrong = link;
  wrong.back() = link.back() == '0' ? '1' : '0';
  const CommandResult other = ask({"stop", wrong});
  CHECK(other.exit_code == 2);
  CHECK_THAT(other.err, ContainsSubstring("another certificate than the link says"));
  const CommandResult unknown = ask({"stop", link.substr(0, link.find('#'))});
  CHECK(unknown.exit_code == 2);
  CHECK_THAT(unknown.err, ContainsSubstring("no authority"));
  const CommandResult plain = ask({"stop", "http" + link.substr(5, link.find('#') - 5)});
  CHECK(plain.exit_code == 2);
  CHECK(ask({"stop", link}).exit_code == 0);
  CHECK(run.wait().exit_code == 0);
}

TEST_CASE("an address of no place, and a text that is no link, are refused", "[tools][watch]") {
  const CommandResult train = run_train({"--serve", "my.host:0"});
  CHECK(train.exit_code == 2);
  CHECK_THAT(train.err, ContainsSubstring("expected ADDRESS:PORT"));
  for (const char* command : {"watch", "status", "stop", "checkpoint"}) {
    CAPTURE(command);
    const CommandResult result = ask({command, "http://example.org/"});
    CHECK(result.exit_code == 2);
    CHECK_THAT(result.err, ContainsSubstring("expected the link of a run"));
  }
}

}  // namespace stagecraft::tests
