/// Tests that `stagecraft train --attach` goes on with the state of workers that have outlived the
/// command before (MR-4), as if it had never been killed, and when it does not.

#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/environment_variable.h"
#include "stagecraft/tests/tools/train/run/train_run.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
using Words = std::vector<std::string>;

constexpr int kAttachedSteps = 60;

/// A run of two ranks whose commands are killed, one after the other, and whose workers outlive
/// them. A command is never far ahead of what its test has read.
class Attached {
 public:
  explicit Attached(const Words& options)
      : options_(with(options, {"--ranks", "2", "--stages", "2"})) {
    REQUIRE(run_command({STAGECRAFT_COMMAND, "credentials", "make", credentials_, "--workers", "2"})
                .exit_code == 0);
    begin();
    const std::string told = "workers join at 127.0.0.1:";
    REQUIRE(command_->wait_for_error(told));
    REQUIRE(command_->wait_for_error("; tensors"));
    const std::string& text = command_->error();
    port_ = std::to_string(std::stoi(text.substr(text.find(told) + told.size())));
    workers_.push_back(worker(0));
    workers_.push_back(worker(1));
  }

  /// Starts the same command again, at the same address.
  void begin(const Words& keeping = {}) {
    const EnvironmentVariable port("STAGECRAFT_PORT", port_);
    const Words folder{"--run-dir", folder_.path() + "/run"};
    command_ = std::make_unique<RunningCommand>(
        small_train(with(with(options_, keeping.empty() ? folder : keeping),
                         {"--steps",
                          std::to_string(kAttachedSteps),
                          "--workers",
                          "joining",
                          "--credentials",
                          credentials_,
                          "--attach",
                          "--save-weights",
                          weights_,
                          "--json"})));
    command_->keep_pace();
  }

  void wait_for_step(int step) {
    REQUIRE(command_->wait_for_output("\"event\":\"step\",\"step\":" + std::to_string(step) + ","));
  }
  void kill() {
    command_->send_signal(SIGKILL);
    (void)command_->wait();
  }
  /// Kills a worker, and starts another one in its place.
  void lose_worker(int number) {
    std::unique_ptr<RunningCommand>& lost = workers_.at(static_cast<std::size_t>(number));
    lost->send_signal(SIGKILL);
    (void)lost->wait();
    lost = worker(number);
  }

  /// Returns the next event of this name.
  nlohmann::json next(const std::string& name) {
    for (;;) {
      const auto line = command_->next_line();
      REQUIRE(line);
      nlohmann::json event = train_event(*line);
      if (event.at("event") == name) {
        return event;
      }
    }
  }

  /// Ends the run, which must be equal to the unbroken one, and its workers with it.
  void end_well() {
    const CommandResult end = command_->wait();
    CAPTURE(end.out, end.err);
    REQUIRE(end.exit_code == 0);
    for (const auto& one : workers_) {
      const CommandResult ended = one->wait();
      CAPTURE(ended.err);
      CHECK(ended.exit_code == 0);
    }
    (void)train_json(with(options_,
                          {"--steps",
                           std::to_string(kAttachedSteps),
                           "--run-dir",
                           place("plain"),
                           "--save-weights",
                           unbroken_}));
    CHECK(read_text_file(weights_) == read_text_file(unbroken_));
  }

  [[nodiscard]] std::string place(const std::string& name) const {
    return folder_.path() + "/" + name;
  }

 private:
  [[nodiscard]] std::unique_ptr<RunningCommand> worker(int number) const {
    return std::make_unique<RunningCommand>(
        Words{STAGECRAFT_COMMAND,
              "worker",
              "--join",
              "127.0.0.1:" + port_,
              "--credentials",
              credentials_ + "/worker-" + std::to_string(number),
              "--outlive",
              "120000"});
  }

  const Words options_;
  const TemporaryFolder folder_;
  const EnvironmentVariable interface_{"STAGECRAFT_INTERFACE", "lo"};
  const std::string credentials_ = folder_.path() + "/credentials",
                    weights_ = folder_.path() + "/attached.safetensors",
                    unbroken_ = folder_.path() + "/unbroken.safetensors";
  std::string port_ = "0";
  std::unique_ptr<RunningCommand> command_;
  std::vector<std::unique_ptr<RunningCommand>> workers_;
};

TEST_CASE("a run goes on with its workers' state after its command was killed, twice (MR-4)",
          "[tools][attach][processes]") {
  // Only a driver knows the scale of losses, and what evaluations have shown.
  Attached run({"--precision",
                "fp16",
                "--lr-schedule",
                "plateau",
                "--lr-patience",
                "1",
                "--eval-every",
                "7"});
  run.wait_for_step(10);
  run.kill();
  run.begin();
  const std::int64_t first = run.next("attached").at("step");
  CHECK(first >= 9);
  run.wait_for_step(30);
  run.kill();
  run.begin();
  const std::int64_t second = run.next("attached").at("step");
  CHECK(second >= 29);
  run.end_well();
}

TEST_CASE("the state of a worker that is lost with its command comes from its keeper",
          "[tools][attach][processes]") {
  const int lost = GENERATE(0, 1);
  Attached run({});
  run.wait_for_step(10);
  run.kill();
  run.lose_worker(lost);
  run.begin();
  CHECK(run.next("attached").at("step") >= 8);
  run.end_well();
}

TEST_CASE("a run whose workers are lost with its command goes on from its checkpoint",
          "[tools][attach][processes]") {
  Attached run({"--save-every", "4"});
  REQUIRE(run.next("saved").at("step") == 4);
  run.wait_for_step(10);
  run.kill();
  run.lose_worker(0);
  run.lose_worker(1);
  run.begin();
  CHECK(run.next("resumed").at("step") >= 4);
  run.end_well();
}

TEST_CASE("workers hand their state on to the same run only", "[tools][attach][processes]") {
  Attached run({});
  run.wait_for_step(10);
  run.kill();
  run.begin({"--run-dir", run.place("other")});
  CHECK(run.next("step").at("step") == 1);
  run.end_well();
}

TEST_CASE("--attach that cannot work is refused", "[tools][attach][bad-input]") {
  const auto refused = [](const Words& more) {
    const CommandResult end = run_train(with(more, {"--attach"}));
    CHECK(end.exit_code == 2);
    return end.err;
  };
  const TemporaryFolder folder;
  const Words joining{"--workers", "joining", "--credentials", folder.path()};
  const Words kept = with(joining, {"--run-dir", folder.path() + "/run"});
  CHECK_THAT(refused({"--run-dir", folder.path()}), ContainsSubstring("--workers joining"));
  CHECK_THAT(refused(joining), ContainsSubstring("--run-dir DIR or --resume DIR"));
  CHECK_THAT(refused(with(kept, {"--verify"})), ContainsSubstring("no --verify"));
  CHECK_THAT(refused(with(kept, {"--mirror", "no"})), ContainsSubstring("--mirror yes"));
}

}  // namespace
}  // namespace stagecraft::tests
