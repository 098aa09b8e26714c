/// Checks that the example for Kubernetes does what docs/kubernetes.md says, as far as a test
/// without Kubernetes can.
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "stagecraft/actors/launch/worker/worker_process.h"
#include "stagecraft/tests/hosts/pods.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

/// Replaces the example's training by one long enough for a test to end it, or by a shorter one.
const std::pair<std::string, std::string> kForLong{"--steps 20 --verify", "--steps 100000 --json"};
const std::pair<std::string, std::string> kShort{"--steps 20 --verify", "--steps 4 --verify"};

using Started = std::vector<std::unique_ptr<RunningCommand>>;

/// Starts all pods of a run.
Started start_all(const Pods& pods) {
  pods.publish_names();
  Started all;
  for (int index = 0; index < pods.size(); ++index) {
    all.push_back(pods.start(index, kForLong));
  }
  if (!all.front()->wait_for_output("\"step\"")) {
    all.front()->send_signal(SIGKILL);
    FAIL("no step was made: " << all.front()->wait().err);
  }
  return all;
}

TEST_CASE("the Job of the examples trains in pods with the bits of one process", "[hosts][pods]") {
  if (const auto why = Pods::obstacle()) {
    SKIP(*why);
  }
  const Pods pods(STAGECRAFT_COMMAND);
  CHECK(pods.is_confined());
  Started workers;
  for (int index = 1; index < pods.size(); ++index) {
    workers.push_back(pods.start(index, kShort));
  }
  // A pod's name gets its address, perhaps after all the others.
  for (const auto& worker : workers) {
    REQUIRE(worker->wait_for_error("driver is waited for"));
  }
  pods.publish_names();
  const CommandResult driver = pods.start(0, kShort)->wait();
  INFO(driver.out << driver.err);
  CHECK(driver.exit_code == 0);
  CHECK_THAT(driver.out, ContainsSubstring("equal"));
  for (const auto& worker : workers) {
    const CommandResult end = worker->wait();
    INFO(end.err);
    CHECK(end.exit_code == 0);  // otherwise the Job would not be complete
  }
}

TEST_CASE("a Job that is deleted ends after its driver's step", "[hosts][pods]") {
  if (const auto why = Pods::obstacle()) {
    SKIP(*why);
  }
  const Pods pods(STAGECRAFT_COMMAND);
  const Started all = start_all(pods);
  for (auto pod = all.rbegin(); pod != all.rend(); ++pod) {
    (*pod)->send_signal(SIGTERM);
  }
  const CommandResult driver = all.front()->wait();
  INFO(driver.err);
  CHECK(driver.exit_code == 128 + SIGTERM);
  CHECK_THAT(driver.out, ContainsSubstring("\"interrupted\""));
  CHECK(pods.fails_job(driver.exit_code));
  for (std::size_t i = 1; i < all.size(); ++i) {
    CHECK(all[i]->wait().exit_code == 0);
  }
}

TEST_CASE("a pod that is killed is named before the Job fails", "[hosts][pods][faults]") {
  if (const auto why = Pods::obstacle()) {
    SKIP(*why);
  }
  const Pods pods(STAGECRAFT_COMMAND);
  const Started all = start_all(pods);
  all.back()->send_signal(SIGKILL);
  const int killed = all.back()->wait().exit_code;
  CHECK_FALSE(pods.fails_job(killed));  // the driver's exit decides
  const CommandResult driver = all.front()->wait();
  INFO(driver.err);
  CHECK(driver.exit_code == 1);
  CHECK(pods.fails_job(driver.exit_code));
  CHECK_THAT(driver.err, ContainsSubstring("rank 2") && ContainsSubstring("on train-2"));
  CHECK(all[1]->wait().exit_code == 0);
}

TEST_CASE("a run with --restarts goes on when the pod of a killed worker has started again",
          "[hosts][pods][faults]") {
  if (const auto why = Pods::obstacle()) {
    SKIP(*why);
  }
  const std::pair<std::string, std::string> healed{"--steps 20 --verify",
                                                   "--steps 20 --restarts 1 --verify --json"};
  const Pods pods(STAGECRAFT_COMMAND);
  pods.publish_names();
  const auto driver = pods.start(0, healed), first = pods.start(1, healed);
  driver->keep_pace();
  auto second = pods.start(2, healed);
  REQUIRE(driver->wait_for_output("\"event\":\"step\",\"step\":3,"));
  second->send_signal(SIGKILL);
  CHECK_FALSE(pods.fails_job(second->wait().exit_code));
  second = pods.start(2, healed);
  const CommandResult end = driver->wait();
  INFO(end.out << end.err);
  CHECK(end.exit_code == 0);
  CHECK_THAT(
      end.out,
      ContainsSubstring("\"event\":\"restart\",") && ContainsSubstring("\"bit_equal\":true"));
  CHECK(first->wait().exit_code == 0);
  CHECK(second->wait().exit_code == 0);
}

TEST_CASE("a worker that is to be replaced neither fails its Job nor completes its pod",
          "[hosts][pods]") {
  if (const auto why = Pods::obstacle()) {
    SKIP(*why);
  }
  CHECK(kToBeReplaced != 0);
  CHECK_FALSE(Pods(STAGECRAFT_COMMAND).fails_job(kToBeReplaced));
}

TEST_CASE("a worker waits for the name of its driver no longer than it is told to", "[hosts]") {
  const TemporaryFolder folder;
  const std::string cluster = folder.path() + "/cluster";
  REQUIRE(run_command({STAGECRAFT_COMMAND, "credentials", "make", cluster, "--workers", "1"})
              .exit_code == 0);
  const CommandResult run = run_command({STAGECRAFT_COMMAND,
                                         "worker",
                                         "--join",
                                         "no.such.host.invalid:7077",
                                         "--credentials",
                                         cluster + "/worker-0",
                                         "--patience",
                                         "1200"});
  CHECK(run.exit_code == 1);
  CHECK_THAT(run.err, ContainsSubstring("driver is waited for"));
  CHECK_THAT(run.err,
             ContainsSubstring("nobody has answered at no.such.host.invalid:7077 within 1200 ms") &&
                 ContainsSubstring("is no name of a host that this one knows"));
}

}  // namespace
}  // namespace stagecraft::tests
