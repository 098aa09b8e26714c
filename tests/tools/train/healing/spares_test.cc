/// Tests that `stagecraft train --spares` goes on with another host if one takes no workers any
/// more, with the bits of an unbroken run.

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/environment_variable.h"
#include "stagecraft/tests/tools/train/run/train_run.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
using Words = std::vector<std::string>;

const Words kSmallRun{"--ranks", "2", "--stages", "2", "--steps", "40"};

/// Holds the hosts node-a and node-b of a launch, and spares of any name. All are this machine,
/// which a script reaches in the place of ssh.
class ScriptedHosts {
 public:
  explicit ScriptedHosts(int slots = 1)
      : file_("STAGECRAFT_HOSTS",
              folder_.write("hosts", fmt::format("node-a slots={0}\nnode-b slots={0}\n", slots))),
        ssh_("STAGECRAFT_SSH", script()),
        interface_("STAGECRAFT_INTERFACE", "127.0.0.1"),
        patience_("STAGECRAFT_JOIN_SECONDS", "10") {}

  /// Lets no worker in on a host from now on.
  void take_down(const std::string& host) const { (void)folder_.write(host + ".down", ""); }
  /// Lets workers in, and does not start them.
  void hold(const std::string& host) const { (void)folder_.write(host + ".held", ""); }

 private:
  [[nodiscard]] std::string script() const {
    std::string path = folder_.write("ssh",
                                     "#!/bin/sh\n"
                                     "for word; do host=$command; command=$word; done\n"
                                     "here=${0%/*}/$host\n"
                                     "[ -e \"$here.down\" ] && exit 255\n"
                                     "[ -e \"$here.held\" ] && exec cat > /dev/null\n"
                                     "exec sh -c \"$command\"\n");
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }

  const TemporaryFolder folder_;
  const EnvironmentVariable file_, ssh_, interface_, patience_;
};

Words spares_words(const Words& run, const Words& more) {
  Words words = run;
  words.insert(words.end(), {"--workers", "processes", "--json"});
  words.insert(words.end(), more.begin(), more.end());
  return small_train(words);
}

/// Lets a run make some steps.
void begin(RunningCommand& run) {
  run.keep_pace();
  const bool begins = run.wait_for_output(R"("event":"step","step":3,)");
  INFO(run.error());
  REQUIRE(begins);
}

/// Kills the worker of a rank, which the run has named on standard error.
void kill_worker(RunningCommand& run, int rank) {
  const std::string begin = "rank " + std::to_string(rank) + ": process ";
  REQUIRE(run.wait_for_error(begin));
  const std::string& told = run.error();
  REQUIRE(kill(std::stoi(told.substr(told.rfind(begin) + begin.size())), SIGKILL) == 0);
}

std::vector<nlohmann::json> events_named(const std::string& name, const std::string& output) {
  std::vector<nlohmann::json> found;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    if (nlohmann::json event = train_event(line); event.at("event") == name) {
      found.push_back(std::move(event));
    }
  }
  return found;
}

TEST_CASE("a rank whose host stays away goes to the first spare that takes it",
          "[tools][restarts][processes]") {
  const ScriptedHosts hosts;
  hosts.hold("node-c");
  RunningCommand run(spares_words(kSmallRun, {"--restarts", "1", "--spares", "node-c,node-d"}));
  begin(run);
  hosts.take_down("node-b");
  kill_worker(run, 1);
  const CommandResult end = run.wait();
  CAPTURE(end.out, end.err);
  REQUIRE(end.exit_code == 0);
  CHECK_THAT(end.err,
             ContainsSubstring("train: rank 1 goes to node-c, a spare: worker of rank 1 on node-b "
                               "is out of reach: ssh could not connect to node-b") &&
                 ContainsSubstring("train: rank 1 goes to node-d, a spare: not all workers have "
                                   "joined within 10000 ms: 1 of 2 workers; missing rank 1 on "
                                   "node-c"));
  const auto restarts = events_named("restart", end.out);
  REQUIRE(restarts.size() == 1);
  CHECK(restarts.front().at("from") == "mirrors");
  CHECK(restarts.front().at("failures").size() == 1);
  const auto done = events_named("done", end.out);
  REQUIRE(done.size() == 1);
  CHECK(done.front().at("weights_sha256") == train_json(kSmallRun).sha256());
}

TEST_CASE("a spare takes all ranks of a host, which is asked for the first of them alone",
          "[tools][restarts][processes]") {
  const Words four{"--ranks", "4", "--stages", "4", "--steps", "40"};
  const ScriptedHosts hosts(/*slots=*/2);
  RunningCommand run(spares_words(four, {"--restarts", "2", "--spares", "node-c"}));
  begin(run);
  hosts.take_down("node-b");
  kill_worker(run, 2);
  kill_worker(run, 3);
  const CommandResult end = run.wait();
  CAPTURE(end.out, end.err);
  REQUIRE(end.exit_code == 0);
  CHECK_THAT(end.err,
             ContainsSubstring(" goes to node-c, a spare: worker of rank ") &&
                 ContainsSubstring(" goes to node-c, a spare: its host did not take another "
                                   "worker") &&
                 !ContainsSubstring("one worker more than its slots"));
  const auto done = events_named("done", end.out);
  REQUIRE(done.size() == 1);
  CHECK(done.front().at("weights_sha256") == train_json(four).sha256());
}

TEST_CASE("a run ends if no host is left, and names the last that it asked",
          "[tools][restarts][processes]") {
  const ScriptedHosts hosts;
  RunningCommand run(spares_words(kSmallRun, {"--restarts", "1", "--spares", "node-c"}));
  begin(run);
  for (const char* host : {"node-a", "node-b", "node-c"}) {
    hosts.take_down(host);
  }
  kill_worker(run, 1);
  const CommandResult end = run.wait();
  CAPTURE(end.out, end.err);
  CHECK(end.exit_code == 1);
  CHECK_THAT(end.err,
             ContainsSubstring("rank 1 goes to node-c, a spare: ") &&
                 ContainsSubstring("rank 1 goes to node-a, which has one worker more than its "
                                   "slots then: ") &&
                 ContainsSubstring("stagecraft: worker of rank 1 on node-a is out of reach") &&
                 ContainsSubstring("because step "));
}

TEST_CASE("spares are for runs that start their workers on a list of hosts",
          "[tools][restarts][bad-input]") {
  const auto refused = [](const Words& words) {
    const CommandResult result = run_train(words);
    CHECK(result.exit_code == 2);
    return result.err;
  };
  const Words processes{"--workers", "processes", "--restarts", "1", "--spares", "node-c"};
  CHECK_THAT(refused({"--spares", "node-c", "--workers", "processes"}),
             ContainsSubstring("--spares expects --restarts N"));
  CHECK_THAT(refused({"--spares", "node-c", "--restarts", "1"}),
             ContainsSubstring("--restarts expects --workers processes or joining, found threads"));
  CHECK_THAT(refused({"--spares", "node-c", "--restarts", "1", "--workers", "joining"}),
             ContainsSubstring("--spares expects workers that `stagecraft launch --hosts FILE` "
                               "starts, found --workers joining"));
  CHECK_THAT(refused(processes),
             ContainsSubstring("node-c is a spare for hosts of a list, and there is no list: start "
                               "the run with `stagecraft launch --hosts FILE -- train"));
  const ScriptedHosts hosts;
  Words listed = processes;
  listed.back() = "node-c,";
  CHECK_THAT(refused(listed),
             ContainsSubstring("expected names of spare hosts, as ssh takes them, found \"\""));
  listed.back() = "node-c,node-b";
  CHECK_THAT(refused(listed),
             ContainsSubstring("node-b is a spare and in the list of hosts: take node-b out of one "
                               "of the two"));
}

}  // namespace
}  // namespace stagecraft::tests
