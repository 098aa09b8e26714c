/// Tests that a run folder holds one run, of one process at a time, and that its record survives
/// lines that are not whole.

#include "stagecraft/tools/run_record/run_folder.h"

#include <sys/resource.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "stagecraft/base/error.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tools/run_record/run_record.h"

namespace stagecraft::tests {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::ContainsSubstring;
using tools::read_run_record;
using tools::RunFolder;
using tools::RunIdentity;

const RunIdentity kLlama{{"--model", "llama"}, {"--ranks", ""}};

/// Lets no file of this process grow beyond a size.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) : ignored_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  }
  FullDisk(const FullDisk&) = delete;
  FullDisk& operator=(const FullDisk&) = delete;
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, ignored_);
  }

 private:
  rlimit before_{};
  void (*const ignored_)(int);
};

struct Scene {
  TemporaryFolder temporary;
  std::string path = temporary.path() + "/runs/a";
  std::istringstream in;
  std::ostringstream out, err;
  tools::Console console{in, out, err};

  [[nodiscard]] std::string record() const { return path + "/record.jsonl"; }

  void start(const RunIdentity& what = kLlama) {
    RunFolder(path, what, console).append({{"event", "start"}, {"host", "here"}});
  }
  std::string refusal(const RunIdentity& what = kLlama) {
    try {
      start(what);
    } catch (const Error& error) {
      CHECK(error.code() == Errc::UsageFile);
      return error.message();
    }
    return "";
  }
};

TEST_CASE("a folder keeps what its run is, and each start", "[tools][run]") {
  Scene scene;
  scene.start();
  scene.start();
  const tools::RunRecord record = read_run_record(scene.path);
  CHECK(record.what == kLlama);
  CHECK(record.damaged == 0);
  REQUIRE(record.events.size() == 3);
  CHECK(record.events[0].at("event") == "run");
  CHECK(record.events[2].at("event") == "start");
  CHECK_THAT(record.events[2].at("time").get<std::string>(), ContainsSubstring("T"));
}

TEST_CASE("another run is refused before anything has changed (FOL-2)", "[tools][run][refusals]") {
  Scene scene;
  scene.start();
  const std::string before = read_text_file(scene.record());
  CHECK_THAT(
      scene.refusal({{"--model", "vit"}, {"--ranks", ""}}),
      ContainsSubstring("holds another run: it has --model llama, this run has --model vit") &&
          ContainsSubstring("stagecraft doctor --run") && ContainsSubstring("name another folder"));
  CHECK_THAT(scene.refusal({{"--model", "llama"}, {"--ranks", "2"}}),
             ContainsSubstring("it has no --ranks, this run has --ranks 2"));
  CHECK_THAT(scene.refusal({{"--model", "llama"}, {"--strategy", "\nplace()"}}),
             ContainsSubstring("the file of --strategy has other contents now"));
  CHECK(read_text_file(scene.record()) == before);
}

TEST_CASE("a folder has one process at a time, and says that it lives (FOL-1)",
          "[tools][run][refusals]") {
  Scene scene;
  {
    const RunFolder first(scene.path, kLlama, scene.console);
    CHECK(tools::is_run_going_on(scene.path));
    CHECK_THAT(scene.refusal(), ContainsSubstring("its run is going on"));
    CHECK(tools::is_run_going_on(scene.path));  // the refused one has not taken the lock away
  }
  CHECK_FALSE(tools::is_run_going_on(scene.path));
  CHECK(scene.refusal().empty());
}

TEST_CASE("lines that are not whole are passed over (REC-1)", "[tools][run]") {
  Scene scene;
  scene.start();
  std::ofstream(scene.record(), std::ios::app) << R"({"event":"end","exit_)";
  CHECK(read_run_record(scene.path).damaged == 1);
  CHECK(read_run_record(scene.path).events.size() == 2);
  scene.start();  // on a line of its own
  CHECK(read_run_record(scene.path).damaged == 1);
  CHECK(read_run_record(scene.path).events.size() == 3);
}

TEST_CASE("a first start that left half a line leaves a new folder", "[tools][run]") {
  Scene scene;
  fs::create_directories(scene.path);
  std::ofstream(scene.record()) << R"({"event":"ru)";
  scene.start();
  CHECK(read_run_record(scene.path).damaged == 0);
  CHECK(read_run_record(scene.path).what == kLlama);
}

TEST_CASE("a record that is none, or is broken, is left as it is", "[tools][run][refusals]") {
  for (const std::string& text :
       {std::string("{\"my\": 1}\n{\"own\": 2}\n"), std::string(100, '\0') + "\n"}) {
    Scene scene;
    fs::create_directories(scene.path);
    std::ofstream(scene.record()) << text;
    CHECK_THROWS_WITH(scene.start(), ContainsSubstring("is no record of a run, or is broken"));
    CHECK(fs::file_size(scene.record()) == text.size());
  }
  Scene scene;
  fs::create_directories(scene.path);
  std::ofstream(scene.path + "/strategy.txt") << "mine";
  CHECK_THROWS_WITH(scene.start(), ContainsSubstring("has files of a run"));
  CHECK(fs::file_size(scene.path + "/strategy.txt") == 4);
}

TEST_CASE("what is no run folder is refused", "[tools][run][refusals]") {
  Scene scene;
  SECTION("checkpoints of a run without a record") {
    fs::create_directories(scene.path + "/checkpoints");
    CHECK_THAT(scene.refusal(), ContainsSubstring("no record of what it is"));
  }
  SECTION("a record that does not say what its run is") {
    fs::create_directories(scene.path);
    std::ofstream(scene.record()) << "{\"event\":\"start\"}\n";
    CHECK_THAT(scene.refusal(), ContainsSubstring("does not say what its run is"));
  }
  SECTION("a file") {
    fs::create_directories(scene.temporary.path() + "/runs");
    std::ofstream(scene.path) << "text";
    CHECK_THAT(scene.refusal(),
               ContainsSubstring("cannot be written") && ContainsSubstring("name another"));
  }
  SECTION("a folder in the place of the record") {
    fs::create_directories(scene.record());
    CHECK_THAT(scene.refusal(), ContainsSubstring("cannot be written"));
  }
}

TEST_CASE("a full disk is told at the start, and once while the run goes on (FOL-3)",
          "[tools][run][refusals]") {
  Scene scene;
  {
    const FullDisk full(5);
    CHECK_THAT(scene.refusal(), ContainsSubstring("cannot be written: File too large"));
  }
  {
    RunFolder folder(scene.path, kLlama, scene.console);
    CHECK(folder.is_complete());
    const FullDisk full(fs::file_size(scene.record()) + 5);
    folder.append({{"event", "start"}, {"host", "here"}});
    folder.append({{"event", "start"}, {"host", "here"}});
    CHECK_FALSE(folder.is_complete());
  }
  const std::string told = scene.err.str();
  CHECK_THAT(told, ContainsSubstring("the run continues") && ContainsSubstring("exits with 2"));
  CHECK(told.find("--run-dir") == told.rfind("--run-dir"));
  scene.start();  // after the disk has room again
  CHECK(read_run_record(scene.path).damaged == 1);
}

}  // namespace
}  // namespace stagecraft::tests
