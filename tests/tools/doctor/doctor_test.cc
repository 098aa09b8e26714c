/// Tests `stagecraft doctor` on this machine, and on hosts behind a script that replaces ssh: it
/// runs here what ssh would run there.

#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "stagecraft/actors/security/cluster_credentials.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/tools/common/runtime_run.h"
#include "stagecraft/tools/doctor/talk/door.h"
#include "stagecraft/tools/doctor/talk/ways.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
using namespace std::chrono_literals;
using Json = nlohmann::json;

CommandResult doctor(const std::vector<std::string>& words) {
  std::vector<std::string> all{STAGECRAFT_COMMAND, "doctor"};
  all.insert(all.end(), words.begin(), words.end());
  return run_here(all);
}

/// Writes a program that a shell runs.
std::string script(const TemporaryFolder& folder,
                   const std::string& name,
                   const std::string& text) {
  const std::string path = folder.write(name, "#!/bin/sh\n" + text);
  chmod(path.c_str(), 0755);
  return path;
}

/// Makes hosts behind this ssh; it refuses a host whose name begins with "gone" as ssh does.
struct FakeHosts {
  TemporaryFolder folder;
  std::string ssh = script(folder,
                           "ssh",
                           "for word; do host=$command; command=$word; done\n"
                           "case $host in gone*)\n"
                           "  echo \"ssh: connect to host $host port 22: Connection refused\" >&2\n"
                           "  exit 255;;\n"
                           "esac\n"
                           "exec sh -c \"$command\"\n");

  [[nodiscard]] CommandResult ask(const std::string& hosts) const {
    return doctor({"--hosts", folder.write("hosts", hosts), "--ssh", ssh, "--json"});
  }
};

/// Returns the findings of a check, of one host or of any, one after the other.
std::string told(const Json& report, const std::string& check, const std::string& host = "") {
  std::string text;
  for (const Json& one : report["findings"]) {
    if (one["check"] == check && (host.empty() || one["host"] == host)) {
      text += one["level"].get<std::string>() + ": " + one["what"].get<std::string>() +
              " mend: " + one["mend"].get<std::string>() + "\n";
    }
  }
  return text;
}

TEST_CASE("the doctor tells people what this machine is", "[tools][doctor]") {
  const CommandResult run = doctor({});
  INFO(run.out << run.err);
  CHECK(run.exit_code == 0);
  CHECK(run.err.empty());
  CHECK(run.out.starts_with("this machine\n"));
  CHECK_THAT(run.out,
             ContainsSubstring("ok       build") && ContainsSubstring("ok       open files") &&
                 ContainsSubstring("0 problems"));
  if (!std::filesystem::exists("/dev/nvidiactl")) {
    CHECK_THAT(run.out, ContainsSubstring("ranks compute on processors: no NVIDIA driver"));
  }
}

TEST_CASE("and programs, with the facts", "[tools][doctor]") {
  const CommandResult run = doctor({"--json"});
  REQUIRE(run.exit_code == 0);
  const Json report = Json::parse(run.out);
  CHECK(report["good"] == true);
  REQUIRE(report["hosts"].size() == 1);
  const Json& facts = report["hosts"][0]["facts"];
  CHECK(facts["protocol"].get<int>() > 0);
  CHECK_FALSE(facts["cpu"]["capability"].get<std::string>().empty());
  CHECK(facts["open_files"].get<std::int64_t>() != 0);
}

TEST_CASE("a limit of open files that is too low is a problem", "[tools][doctor]") {
  const CommandResult run =
      run_command({"sh", "-c", "ulimit -n 64; exec \"$0\" doctor", STAGECRAFT_COMMAND});
  INFO(run.out << run.err);
  CHECK(run.exit_code == 1);
  CHECK_THAT(run.out,
             ContainsSubstring("problem  open files     64 may be open") &&
                 ContainsSubstring("mend: raise the hard limit") &&
                 ContainsSubstring("1 problem,"));
}

TEST_CASE("words that make no sense end with 2", "[tools][doctor][bad-input]") {
  const TemporaryFolder folder;
  CHECK(doctor({"--hots", "x"}).exit_code == 2);
  CHECK(doctor({"--hosts", "/nowhere/hosts"}).exit_code == 2);
  CHECK(doctor({"--hosts", folder.write("hosts", "a slots=0\n")}).exit_code == 2);
  CHECK(doctor({"--credentials", "/nowhere"}).exit_code == 2);
  const CommandResult alone = doctor({"--ssh", "ssh"});
  CHECK(alone.exit_code == 2);
  CHECK_THAT(alone.err, ContainsSubstring("expect --hosts FILE"));
  const CommandResult typed =
      run_command({"sh", "-c", "echo hello | \"$0\" doctor --answer", STAGECRAFT_COMMAND});
  CHECK(typed.exit_code == 2);
  CHECK_THAT(typed.err, ContainsSubstring("expected a question of a doctor"));
}

TEST_CASE("the doctor looks through credentials", "[tools][doctor]") {
  const TemporaryFolder folder;
  const std::string dir = folder.path() + "/cluster";
  make_credentials(dir, {.members = 1, .cluster = "north", .durable = false});
  CHECK(doctor({"--credentials", dir}).exit_code == 0);
  chmod((dir + "/worker-0/key.pem").c_str(), 0644);
  const CommandResult open = doctor({"--credentials", dir});
  CHECK(open.exit_code == 1);
  CHECK_THAT(open.out,
             ContainsSubstring("credentials\n") && ContainsSubstring("problem  worker-0") &&
                 ContainsSubstring("0644"));
}

TEST_CASE("hosts are asked, and every pair of them", "[tools][doctor]") {
  const FakeHosts hosts;
  const CommandResult run = hosts.ask("node-a addr=127.0.0.1 slots=2\nnode-b addr=127.0.0.1\n");
  INFO(run.out << run.err);
  CHECK(run.exit_code == 0);
  const Json report = Json::parse(run.out);
  CHECK(report["hosts"].size() == 3);
  CHECK_THAT(told(report, "ways"), ContainsSubstring("ok: all 6 are open"));
  CHECK_THAT(told(report, "clock", "node-b"), ContainsSubstring("ok: within"));
  CHECK_THAT(told(report, "build", "between hosts"), ContainsSubstring("ok"));
}

TEST_CASE("hosts that compute other bits are told", "[tools][doctor]") {
  const FakeHosts hosts;
  const CommandResult run =
      hosts.ask("node-a addr=127.0.0.1\nnode-b addr=127.0.0.1 ATEN_CPU_CAPABILITY=default\n");
  CHECK(run.exit_code == 1);
  CHECK_THAT(told(Json::parse(run.out), "processor", "between hosts"),
             ContainsSubstring("problem") && ContainsSubstring("DEFAULT on node-b") &&
                 ContainsSubstring("ATEN_CPU_CAPABILITY=default"));
}

TEST_CASE("a host that cannot be asked is a finding, and the others are asked all the same",
          "[tools][doctor]") {
  const FakeHosts hosts;
  const std::string old = script(hosts.folder, "stagecraft", "echo 'expected a command'; exit 2\n");
  const CommandResult run = hosts.ask(
      "gone-1 addr=127.0.0.1\nnode-a addr=127.0.0.1\nnode-b worker=/nowhere/stagecraft\nnode-c "
      "worker=" +
      old + "\nnode-d addr=192.0.2.77\n");
  INFO(run.out << run.err);
  CHECK(run.exit_code == 1);
  const Json report = Json::parse(run.out);
  CHECK_THAT(told(report, "ssh", "gone-1"),
             ContainsSubstring("problem: gone-1 is out of reach") &&
                 ContainsSubstring("Connection refused") && ContainsSubstring("`ssh gone-1 true`"));
  CHECK_THAT(told(report, "ssh", "node-b"),
             ContainsSubstring("exit status 127") && ContainsSubstring("worker="));
  CHECK_THAT(told(report, "ssh", "node-c"),
             ContainsSubstring("expected a command") && ContainsSubstring("the same build"));
  CHECK_THAT(told(report, "address", "node-d"),
             ContainsSubstring("neither an interface nor an address \"192.0.2.77\"") &&
                 ContainsSubstring("addr="));
  CHECK(told(report, "ssh", "node-a").empty());
  CHECK_THAT(told(report, "ways"), ContainsSubstring("were not tried"));
}

TEST_CASE("a host with another build is told by its answer", "[tools][doctor]") {
  const FakeHosts hosts;
  const std::string other = script(
      hosts.folder,
      "stagecraft",
      "while read -r line; do\n"
      "  echo '{\"doctor\":\"any\",\"facts\":{\"protocol\":4,\"build\":\"stagecraft 0.0.9\"}}'\n"
      "done\n");
  const CommandResult run = hosts.ask("node-a addr=127.0.0.1 worker=" + other + "\n");
  INFO(run.out << run.err);
  CHECK(run.exit_code == 1);
  CHECK_THAT(told(Json::parse(run.out), "build", "between hosts"),
             ContainsSubstring("problem") && ContainsSubstring("stagecraft 0.0.9 on node-a"));
}

TEST_CASE("a way is open only to the door that is meant", "[tools][doctor]") {
  const tools::Door door("127.0.0.1"), other("::1");
  tools::DoorPlace wrong = door.place(), closed = door.place();
  wrong.token = "another";
  closed.port = 1;
  const auto tried = tools::try_ways(
      {{"a", door.place()}, {"b", other.place()}, {"c", wrong}, {"d", closed}, {"e", {"x", 1, ""}}},
      10s);
  REQUIRE(tried.size() == 5);
  CHECK(tried[0].fault.empty());
  CHECK(tried[1].fault.empty());
  CHECK(tried[2].fault == "somebody else answers there");
  CHECK(tried[3].fault == "connection refused");
  CHECK(tried[4].fault == "that is no address in digits");
  CHECK_THROWS_WITH(tools::Door("192.0.2.77"), ContainsSubstring("no port can be opened"));
}

}  // namespace
}  // namespace stagecraft::tests
