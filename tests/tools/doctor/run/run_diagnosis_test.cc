/// Tests what `stagecraft doctor --run` says of records that no test can make by training: torn,
/// empty and strange ones, those of other hosts and other builds, and those of strangers.

#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "stagecraft/base/printable.h"
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

TEST_CASE("text of a stranger's record does not change the terminal", "[tools][doctor]") {
  const TemporaryFolder beside;
  const std::string log = beside.write("worker.log", "\x1B[31mred\n");
  const Record record(
      {kRun,
       start_line("a\x1B[2J"),
       R"({"event":"failed_at","log":")" + log + R"("})",
       R"({"event":"end","exit_status":1,"error":{"message":"\u009b]0;x\u0007"}})"});
  for (const bool json : {false, true}) {
    const std::string out = record.doctor(json).out;
    CHECK(printable(out, "\n") == out);
    CHECK_THAT(out, ContainsSubstring("]0;x"));
  }
  const std::string odd = record.folder.path() + "/a\x1B[2J";
  std::filesystem::create_directory(odd);
  std::filesystem::copy(record.folder.path() + "/record.jsonl", odd);
  const CommandResult run = run_here({STAGECRAFT_COMMAND, "doctor", "--run", odd});
  CHECK(printable(run.out, "\n") == run.out);
}

TEST_CASE("the command of a stranger's record is one command", "[tools][doctor]") {
  const Record record({kRun,
                       R"x({"event":"start","command":["a;b"],"directory":"$(c)","environment":)x"
                       R"({"LD_PRELOAD":"1","OMP_A;reboot;B":"1","OMP_C":"$d","OMP_E":7}})"});
  CHECK(Json::parse(record.doctor().out).at("go_on") ==
        "cd '$(c)' && OMP_C='$d' stagecraft train 'a;b'");
}

TEST_CASE("values that are nested deeper than those of any event are left out (REC-2)",
          "[tools][doctor]") {
  const std::size_t depth = 200'000;
  const Record record({kRun,
                       R"({"event":"start","command":["x",)" + std::string(depth, '[') +
                           std::string(depth, ']') + R"(],"directory":"/there"})"});
  const CommandResult run = record.doctor();
  CHECK(run.exit_code == 1);
  CHECK_THAT(Json::parse(run.out).at("go_on").get<std::string>(),
             ContainsSubstring("cd /there && stagecraft train x"));
}

TEST_CASE("a record that is larger than any run writes is refused (REC-2)", "[tools][doctor]") {
  const Record record({kRun, start_line()});
  std::filesystem::resize_file(record.folder.path() + "/record.jsonl", (64U << 20U) + 1);
  const CommandResult run = record.doctor();
  CHECK(run.exit_code == 2);
  CHECK_THAT(run.err, ContainsSubstring("67108865 bytes, more than any run writes"));
}

TEST_CASE("numbers that no run has count as missing", "[tools][doctor]") {
  const auto end = GENERATE("4294967296", "-1", "1e300", "18446744073709551615");
  CAPTURE(end);
  const Record record({kRun,
                       std::string(R"({"event":"start","process":)") + end + "}",
                       std::string(R"({"event":"end","exit_status":)") + end + "}"});
  CHECK_THAT(how_of(record.doctor()), ContainsSubstring("nobody could read its output"));
}

TEST_CASE("a log that is a pipe keeps nobody waiting", "[tools][doctor]") {
  const TemporaryFolder beside;
  const std::string pipe = beside.path() + "/worker.log";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const Record record({kRun,
                       start_line(),
                       R"({"event":"failed_at","log":")" + pipe + R"("})",
                       R"({"event":"end","exit_status":1,"error":{}})"});
  const CommandResult run = record.doctor();
  CHECK_FALSE(run.timed_out);
  CHECK(Json::parse(run.out).at("last_lines").empty());
}

TEST_CASE("the last lines and the last whole row are found in long files", "[tools][doctor]") {
  const TemporaryFolder beside;
  std::string text;
  for (int step = 1; step <= 20'000; ++step) {
    text += std::to_string(step) + ",0.5\n";
  }
  static_cast<void>(beside.write("metrics.csv", "step,loss\n" + text + "20001,0."));
  const Record record({kRun,
                       R"({"event":"start","places":{"metrics":")" + beside.path() + R"("}})",
                       R"({"event":"failed_at","log":")" + beside.path() + R"(/metrics.csv"})"});
  const Json report = Json::parse(record.doctor().out);
  CHECK(report.at("step") == 20'000);
  CHECK(report.at("last_lines").size() == 10);
  CHECK(report.at("last_lines").back() == "20001,0.");
}

}  // namespace
}  // namespace stagecraft::tests
