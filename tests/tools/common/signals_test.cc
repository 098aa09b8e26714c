/// Tests the response of a run to SIGINT, SIGTERM and SIGHUP.

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <sstream>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/eventually.h"
#include "stagecraft/tests/tools/train/run/train_run.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

const std::vector<std::string> kEndless{"--stages", "2", "--steps", "1000000000"};

std::vector<std::string> endless(const std::vector<std::string>& more) {
  std::vector<std::string> words = kEndless;
  words.insert(words.end(), more.begin(), more.end());
  return small_train(words);
}

std::vector<nlohmann::json> events_of(const std::string& output) {
  std::vector<nlohmann::json> events;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
    events.push_back(train_event(line));
  }
  return events;
}

/// Makes a pipe without a reader, small enough for one write to fill it.
class FullPipe {
 public:
  explicit FullPipe(std::string path) : path_(std::move(path)) {
    REQUIRE(mkfifo(path_.c_str(), 0600) == 0);
    fd_ = open(path_.c_str(), O_RDWR | O_CLOEXEC);
    REQUIRE(fd_ >= 0);
    size_ = fcntl(fd_, F_SETPIPE_SZ, 4096);
    REQUIRE(size_ > 0);
  }
  ~FullPipe() { close(fd_); }
  FullPipe(const FullPipe&) = delete;
  FullPipe& operator=(const FullPipe&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }

  [[nodiscard]] bool wait_until_full() const {
    int waiting = 0;
    return eventually([&] { return ioctl(fd_, FIONREAD, &waiting) == 0 && waiting >= size_; },
                      kCommandLimit);
  }

 private:
  std::string path_;
  int fd_ = -1;
  int size_ = 0;
};

/// Returns the writing end of a pipe once it has a reader; below 0 if it has none.
int open_when_read(const std::string& pipe) {
  int file = -1;
  const auto is_read = [&] {
    file = open(pipe.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    return file >= 0;
  };
  (void)eventually(is_read, kCommandLimit);
  return file;
}

}  // namespace

TEST_CASE(
    "a signal finishes the step, saves, closes as always and is told by the exit status (TN-2)",
    "[tools][signals]") {
  const auto [signal, name] = GENERATE(
      table<int, std::string>({{SIGINT, "SIGINT"}, {SIGTERM, "SIGTERM"}, {SIGHUP, "SIGHUP"}}));
  CAPTURE(name);
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/stopped.ckpt";
  RunningCommand running(endless({"--save", file, "--json", "--verify"}));
  REQUIRE(running.wait_for_output("\"step\":2,"));
  running.send_signal(signal);
  const CommandResult result = running.wait();
  CAPTURE(result.out, result.err);
  CHECK(result.exit_code == 128 + signal);
  CHECK(result.err ==
        "stagecraft: finishing this step, then saving; again after 1 s to stop without saving\n");
  std::vector<nlohmann::json> events = events_of(result.out);
  std::erase_if(events, [](const auto& event) {
    return event.at("event") == "step" || event.at("event") == "ranks";
  });
  REQUIRE(events.size() == 5);
  const std::int64_t step = events[0].at("step");
  CHECK(step >= 2);
  CHECK(events[0] == nlohmann::json{{"event", "interrupted"}, {"step", step}, {"signal", name}});
  CHECK(events[1] == nlohmann::json{{"event", "saved"}, {"step", step}, {"file", file}});
  CHECK(events[2].at("bit_equal") == true);
  CHECK(events[3].at("event") == "planned_against_measured");
  CHECK(events[4].at("steps") == step);
  // The saved file is a checkpoint like any other, of the weights at the end of the run.
  const TrainOutput resumed =
      train_json({"--stages", "2", "--steps", std::to_string(step + 1), "--load", file});
  CHECK(resumed.steps.front().at("step") == step + 1);
}

TEST_CASE("a run that saves nothing says so, and closes with its report", "[tools][signals]") {
  RunningCommand running(endless({}));
  REQUIRE(running.wait_for_output("step 1/"));
  running.send_signal(SIGTERM);
  const CommandResult result = running.wait();
  CAPTURE(result.out, result.err);
  CHECK(result.exit_code == 128 + SIGTERM);
  CHECK(result.err == "stagecraft: finishing this step; again after 1 s to stop at once\n");
  for (const char* part : {"saves nothing: give --save-dir DIR",
                           "interrupted by SIGTERM after step",
                           "busiest: rank",
                           "makespan: ",
                           "weights sha256",
                           "done: step"}) {
    CHECK_THAT(result.out, ContainsSubstring(part));
  }
}

TEST_CASE("the first signal is answered at once, the second ends the process by itself",
          "[tools][signals]") {
  const auto [first, second] =
      GENERATE(table<int, int>({{SIGINT, SIGINT}, {SIGINT, SIGTERM}, {SIGHUP, SIGTERM}}));
  CAPTURE(first, second);
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/stopped.ckpt";
  const FullPipe pipe(folder.path() + "/pipe");
  RunningCommand running(endless({"--save", file, "--trace", pipe.path()}));
  // The step never ends because its trace is not read.
  REQUIRE(pipe.wait_until_full());
  running.send_signal(first);
  REQUIRE(running.wait_for_error("again after 1 s to stop without saving"));
  // Within this interval a second signal would count as the first again (I-3).
  CHECK_FALSE(running.wait_for_error("anything else", std::chrono::seconds(2)));
  running.send_signal(second);
  const CommandResult result = running.wait();
  CAPTURE(result.out, result.err);
  CHECK(result.exit_code == 128 + second);
  CHECK_THAT(result.out, !ContainsSubstring("interrupted"));
  CHECK_FALSE(std::filesystem::exists(file));
}

TEST_CASE("a hang-up that comes once more takes nothing from the save (I-3)", "[tools][signals]") {
  const int first = GENERATE(SIGHUP, SIGTERM);
  CAPTURE(first);
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/stopped.ckpt";
  const FullPipe pipe(folder.path() + "/pipe");
  RunningCommand running(endless({"--save", file, "--trace", pipe.path(), "--json"}));
  REQUIRE(pipe.wait_until_full());
  running.send_signal(first);
  REQUIRE(running.wait_for_error("again after 1 s to stop without saving"));
  running.send_signal(SIGHUP);
  const RunningCommand reader({"dd", "if=" + pipe.path(), "of=/dev/null"});
  const CommandResult result = running.wait();
  CAPTURE(result.out, result.err);
  CHECK(result.exit_code == 128 + first);
  CHECK_THAT(result.out, ContainsSubstring("\"saved\"") && ContainsSubstring("\"done\""));
  CHECK(std::filesystem::exists(file));
}

TEST_CASE("a signal that is ignored, as a hang-up under nohup, stays ignored (I-2)",
          "[tools][signals]") {
  const auto [ignored, other, name] = GENERATE(table<int, int, std::string>(
      {{SIGHUP, SIGTERM, "HUP"}, {SIGINT, SIGTERM, "INT"}, {SIGTERM, SIGINT, "TERM"}}));
  CAPTURE(name);
  std::vector<std::string> words{"bash", "-c", "trap '' " + name + "; exec \"$@\"", "bash"};
  const std::vector<std::string> run = endless({"--json"});
  words.insert(words.end(), run.begin(), run.end());
  RunningCommand running(words);
  REQUIRE(running.wait_for_output("\"step\":1,"));
  running.send_signal(ignored);
  running.send_signal(other);
  const CommandResult result = running.wait();
  CAPTURE(result.out, result.err);
  CHECK(result.exit_code == 128 + other);
  CHECK_THAT(result.out, ContainsSubstring(other == SIGINT ? "SIGINT" : "SIGTERM"));
}

TEST_CASE("before there is anything to finish a signal just ends the process", "[tools][signals]") {
  const TemporaryFolder folder;
  const std::string text = folder.path() + "/text";
  REQUIRE(mkfifo(text.c_str(), 0600) == 0);
  RunningCommand running(endless({"--text", text}));
  const int writer = open_when_read(text);
  REQUIRE(writer >= 0);
  running.send_signal(SIGTERM);
  const CommandResult result = running.wait();
  close(writer);
  CHECK(result.exit_code == 128 + SIGTERM);
  CHECK(result.out.empty());
  CHECK(result.err.empty());
}

}  // namespace stagecraft::tests
