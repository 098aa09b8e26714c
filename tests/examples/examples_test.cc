/// Checks that the small programs do what they show: they end well and their training improves.

#include <csignal>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"

namespace stagecraft::tests {
namespace {

std::vector<double> losses_of(const std::string& output) {
  const std::regex pattern("step [0-9]+  loss ([0-9.e+-]+)");
  std::vector<double> losses;
  for (std::sregex_iterator match(output.begin(), output.end(), pattern), end; match != end;
       ++match) {
    losses.push_back(std::stod((*match)[1]));
  }
  return losses;
}

}  // namespace

TEST_CASE("a small program ends well and its loss falls", "[tools][examples]") {
  const std::string program = GENERATE("two_stages", "two_encoders", "local_data");
  const CommandResult result = run_command({STAGECRAFT_BUILD_DIR "/bin/examples/" + program});
  CAPTURE(result.out, result.err);
  REQUIRE(result.exit_code == 0);
  const std::vector<double> losses = losses_of(result.out + result.err);  // as progress, or its own
  REQUIRE(losses.size() >= 4);
  CHECK(losses.back() < 0.8 * losses.front());
}

TEST_CASE("a program is its own worker, whatever the generic one is",
          "[tools][examples][processes]") {
  const std::string program = STAGECRAFT_BUILD_DIR "/bin/examples/own_worker";
  const CommandResult result =
      run_command({"/usr/bin/env", "STAGECRAFT_WORKER=/bin/false", program});
  CAPTURE(result.out, result.err);
  REQUIRE(result.exit_code == 0);
  const std::vector<double> losses = losses_of(result.out);
  REQUIRE(losses.size() == 5);
  CHECK(losses.back() < 0.8 * losses.front());
  const std::regex pattern("rank ([01]) is process ([0-9]+)\n");
  std::set<pid_t> processes;
  for (std::sregex_iterator match(result.out.begin(), result.out.end(), pattern), end; match != end;
       ++match) {
    processes.insert(std::stoi((*match)[2]));
  }
  CHECK(processes.size() == 2);
  for (const pid_t process : processes) {
    CHECK(kill(process, 0) == -1);  // ended before their program did
  }
}

TEST_CASE("a program that was ended continues as if it had not been", "[tools][examples]") {
  const std::string program = STAGECRAFT_BUILD_DIR "/bin/examples/continued_fit";
  const TemporaryFolder once, twice;
  const CommandResult unbroken = run_command({program, once.path(), "6"});
  CAPTURE(unbroken.err);
  REQUIRE(unbroken.exit_code == 0);
  CHECK(unbroken.out.starts_with("best loss "));
  REQUIRE(run_command({program, twice.path(), "3"}).exit_code == 0);
  const CommandResult continued = run_command({program, twice.path(), "6"});
  CAPTURE(continued.err);
  CHECK(continued.out == unbroken.out);
  CHECK(continued.err.find("epoch 1/6") == std::string::npos);
}

TEST_CASE("what is not captured trains alike in threads and in processes",
          "[tools][examples][processes]") {
  const std::string name = GENERATE("native_stage", "matcher_on_driver", "pipelined_unet");
  const std::string program = STAGECRAFT_BUILD_DIR "/bin/examples/" + name;
  const CommandResult threads = run_command({program}), processes = run_command({program, "apart"});
  CAPTURE(threads.err, processes.err);
  REQUIRE(threads.exit_code == 0);
  const std::vector<double> losses = losses_of(threads.out);
  REQUIRE(losses.size() == 40);
  CHECK(losses.back() < 0.5 * losses.front());
  CHECK(processes.out == threads.out);
}

TEST_CASE("actors of a program's own classes work together on their ranks",
          "[tools][examples][processes]") {
  const std::string program = STAGECRAFT_BUILD_DIR "/bin/examples/remote_actors";
  const CommandResult threads = run_command({program}), processes = run_command({program, "apart"});
  CAPTURE(threads.err, processes.err);
  REQUIRE(threads.exit_code == 0);
  REQUIRE(processes.exit_code == 0);
  CHECK(threads.out == "spaces: 6\n");
  CHECK(processes.out == threads.out);
}

}  // namespace stagecraft::tests
