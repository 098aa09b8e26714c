/// Tests what `stagecraft doctor --run` says of records that no test can make by training: torn,
/// empty and strange ones, and those of other hosts and other builds.

#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "stagecraft/base/process/host_name.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/tools/common/runtime_run.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
using Json = nlohmann::json;

const std::string kRun = R"({"event":"run","time":"t0","what":{"--model":"llama"}})";

/// Returns the line of a start on this host, before the system has started anew.
std::string start_line(const std::string& host = host_name(), const std::string& boot = "old") {
  return Json{{"event", "start"},
              {"time", "2026-11-23T02:41:07Z"},
              {"command", {"--text", "my text"}},
              {"directory", "/home/me"},
              {"environment", {{"STAGECRAFT_HOSTS", "hosts"}}},
              {"host", host},
              {"process", 4711},
              {"boot", boot}}
      .dump();
}

struct Record {
  TemporaryFolder folder;

  explicit Record(const std::vector<std::string>& lines) {
    std::string text;
    for (const std::string& line : lines) {
      text += line + '\n';
    }
    static_cast<void>(folder.write("record.jsonl", text));
  }
  [[nodiscard]] CommandResult doctor(bool json = true) const {
    std::vector<std::string> words{STAGECRAFT_COMMAND, "doctor", "--run", folder.path()};
    if (json) {
      words.emplace_back("--json");
    }
    return run_here(words);
  }
};

std::string how_of(const CommandResult& run) {
  CAPTURE(run.out, run.err);
  REQUIRE(run.exit_code == 1);
  return Json::parse(run.out).at("how");
}

TEST_CASE("the doctor refuses what is no run folder", "[tools][doctor][refusals]") {
  const TemporaryFolder folder;
  const auto refused = [](const std::string& path) {
    const CommandResult run = run_here({STAGECRAFT_COMMAND, "doctor", "--run", path});
    CHECK(run.exit_code == 2);
    CHECK(run.out.empty());
    return run.err;
  };
  CHECK_THAT(refused(folder.path() + "/none"), ContainsSubstring("expected a folder of"));
  CHECK_THAT(refused(folder.path()), ContainsSubstring("which has no record.jsonl"));
  CHECK_THAT(refused(folder.write("file", "x")), ContainsSubstring("which is no folder"));
  for (const auto& lines : {std::vector<std::string>{},
                            std::vector<std::string>{"torn"},
                            std::vector<std::string>{kRun}}) {
    const CommandResult run = Record(lines).doctor();
    CHECK(run.exit_code == 2);
    CHECK_THAT(run.err, ContainsSubstring("no whole line of it says that a run started there"));
  }
  const CommandResult both =
      run_here({STAGECRAFT_COMMAND, "doctor", "--run", folder.path(), "--hosts", "h"});
  CHECK(both.exit_code == 2);
}

TEST_CASE("a process without an end was killed, with its host, or elsewhere", "[tools][doctor]") {
  CHECK_THAT(how_of(Record({kRun, start_line()}).doctor()),
             ContainsSubstring("process 4711 on " + host_name() + " ended with its host"));
  CHECK_THAT(how_of(Record({kRun, start_line("elsewhere")}).doctor()),
             ContainsSubstring("process 4711 on elsewhere has said no end"));
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  std::getline(file, boot);
  CHECK_THAT(how_of(Record({kRun, start_line(host_name(), boot)}).doctor()),
             ContainsSubstring("was killed without a word"));
}

TEST_CASE("a torn line is passed over, and noted", "[tools][doctor]") {
  const Record record({kRun, start_line(), R"({"event":"began","step":0,"st)"});
  const Json report = Json::parse(record.doctor().out);
  CHECK(report.at("state") == "killed");
  CHECK(report.at("notes").at(0) == "1 line of the record is not whole, and was passed over");
  CHECK(report.at("steps").is_null());
}

TEST_CASE("fields of another type count as missing", "[tools][doctor]") {
  const Record record({kRun,
                       R"({"event":"start","time":7,"command":"x","host":[],"places":3})",
                       R"({"event":"restart","failures":7,"workers":{}})",
                       R"({"event":"failed_at","step":"five","log":[]})",
                       R"({"event":"end","exit_status":"one","error":7})"});
  const CommandResult run = record.doctor();
  INFO(run.err);
  CHECK(run.exit_code == 1);
  CHECK(Json::parse(run.out).at("state") == "failed");
  CHECK(record.doctor(/*json=*/false).exit_code == 1);
}

TEST_CASE("the last start decides, and the command is quoted for a shell", "[tools][doctor]") {
  const Record record({kRun,
                       start_line(),
                       R"({"event":"end","exit_status":1,"error":{"message":"bad"}})",
                       start_line(),
                       R"({"event":"began","step":3,"steps":8,"workers":[]})",
                       R"({"event":"not_saved","step":5,"why":"the disk is full"})",
                       R"({"event":"end","time":"t9","exit_status":0})"});
  const CommandResult run = record.doctor();
  CHECK(run.exit_code == 0);
  const Json report = Json::parse(run.out);
  CHECK(report.at("state") == "finished");
  CHECK(report.at("starts") == 2);
  CHECK(report.at("step") == 3);
  CHECK(report.at("ended") == "t9");
  CHECK(report.at("notes").at(0) == "the checkpoint of step 5 was not saved: the disk is full");
  CHECK(report.at("go_on") ==
        "cd /home/me && STAGECRAFT_HOSTS=hosts stagecraft train --text 'my text'");
}

TEST_CASE("a run that made its steps and could not compare them needs somebody",
          "[tools][doctor]") {
  const Record record({kRun,
                       start_line(),
                       R"({"event":"not_verified","difference":"step 2"})",
                       R"({"event":"end","exit_status":1})"});
  CHECK_THAT(how_of(record.doctor()), ContainsSubstring("--verify found a difference: step 2"));
  CHECK_THAT(how_of(Record({kRun, start_line(), R"({"event":"end","exit_status":2})"}).doctor()),
             ContainsSubstring("nobody could read its output"));
}

}  // namespace
}  // namespace stagecraft::tests
