/// Tests the files that a run names: they are tried before the run begins, and existing contents
/// are not destroyed.

#include "stagecraft/tools/train/job/places.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "stagecraft/base/error.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"
#include "stagecraft/tests/tools/train/run/train_run.h"

namespace stagecraft::tests {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::ContainsSubstring;
using tools::TrainOptions;

/// Returns the start of a run that has nothing to resume.
tools::RunStart start_of(const TrainOptions& options) {
  return {.checkpoint = options.keeping.load};
}

std::string complaint(const TrainOptions& options) {
  return refusal([&] { tools::check_places(options, start_of(options)); }, Errc::UsageFile);
}

TrainOptions saving(const std::string& path) {
  TrainOptions options;
  options.keeping.save = path;
  return options;
}

TrainOptions tracing(const std::string& path) {
  TrainOptions options;
  options.keeping.trace = path;
  return options;
}

long entries(const std::string& folder) {
  return std::distance(fs::directory_iterator(folder), {});
}

/// Makes a folder with one file of each kind.
struct Kinds {
  TemporaryFolder folder;
  std::string file = folder.write("file", "old"), pipe = at("pipe"), link = at("link"),
              dangling = at("dangling"), astray = at("astray");

  Kinds() {
    REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
    fs::create_symlink("file", link);
    fs::create_symlink("none", dangling);
    fs::create_symlink("no/such", astray);
  }

  [[nodiscard]] std::string at(const std::string& name) const { return folder.path() + "/" + name; }
};

}  // namespace

TEST_CASE("a checkpoint's place is a file, or nothing yet, also behind a link", "[tools][places]") {
  const Kinds kinds;
  for (const std::string& good :
       {kinds.file, kinds.link, kinds.dangling, kinds.at("new"), std::string("new_here.ckpt")}) {
    CAPTURE(good);
    CHECK_NOTHROW(tools::check_places(saving(good), {}));
  }
  CHECK_THAT(complaint(saving(kinds.pipe)),
             ContainsSubstring("--save: ") && ContainsSubstring("a pipe"));
  CHECK_THAT(complaint(saving(kinds.folder.path())), ContainsSubstring("a directory"));
  CHECK_THAT(complaint(saving(kinds.astray)), ContainsSubstring("no folder"));
  CHECK_THAT(complaint(saving("/proc/x")), ContainsSubstring("cannot be written"));
  CHECK_THAT(complaint(saving("/dev/stdout")), ContainsSubstring("an open descriptor"));
  CHECK_THAT(complaint(saving("")), ContainsSubstring("the name is empty"));
  CHECK_THAT(complaint(saving("-")), ContainsSubstring("./-"));
  CHECK(entries(kinds.folder.path()) == 5);
  CHECK(read_text_file(kinds.file) == "old");
}

TEST_CASE("a trace's place may be a stream as well, and is only looked at", "[tools][places]") {
  const Kinds kinds;
  for (const std::string& good : {kinds.file,
                                  kinds.link,
                                  kinds.dangling,
                                  kinds.at("new"),
                                  kinds.pipe,
                                  std::string("/dev/stdout"),
                                  std::string("/dev/null")}) {
    CAPTURE(good);
    CHECK_NOTHROW(tools::check_places(tracing(good), {}));
  }
  CHECK_THAT(complaint(tracing(kinds.folder.path())),
             ContainsSubstring("--trace: ") && ContainsSubstring("a directory"));
  CHECK_THAT(complaint(tracing(kinds.astray)), ContainsSubstring("no folder"));
  CHECK_THAT(complaint(tracing("/proc/x")), ContainsSubstring("cannot be written"));
  CHECK(entries(kinds.folder.path()) == 5);
  CHECK(read_text_file(kinds.file) == "old");
}

TEST_CASE("a file that another option names is not taken from it", "[tools][places]") {
  const TemporaryFolder folder;
  const std::string file = folder.write("file", "old"), link = folder.path() + "/link";
  fs::create_symlink(file, link);
  TrainOptions options;
  options.keeping.save = link;
  SECTION("the text") {
    options.data.text = file;
    CHECK_THAT(complaint(options), ContainsSubstring("--save and --text name one file"));
  }
  SECTION("the schedule") {
    options.pipeline.schedule = file;
    CHECK_THAT(complaint(options), ContainsSubstring("--save and --schedule name one file"));
  }
  SECTION("the trace, where neither is there yet") {
    options.keeping.save = folder.path() + "/new";
    options.keeping.trace =
        folder.path() + "/../" + fs::path(folder.path()).filename().string() + "/new";
    CHECK_THAT(complaint(options), ContainsSubstring("--trace and --save name one file"));
  }
  SECTION("the trace, where neither is there yet and one has no folder in its name") {
    options.keeping.save = "new_here.ckpt";
    options.keeping.trace = "./new_here.ckpt";
    CHECK_THAT(complaint(options), ContainsSubstring("--trace and --save name one file"));
  }
  SECTION("the trace, where only a link is there yet") {
    const std::string dangling = folder.path() + "/dangling", file_to_be = folder.path() + "/new";
    fs::create_symlink("new", dangling);
    options.keeping.save = dangling;
    options.keeping.trace = file_to_be;
    CHECK_THAT(complaint(options), ContainsSubstring("--trace and --save name one file"));
    options.keeping.save = file_to_be;
    options.keeping.trace = dangling;
    CHECK_THAT(complaint(options), ContainsSubstring("--trace and --save name one file"));
  }
  SECTION("a trace in the place of the checkpoint to load") {
    options.keeping.save.reset();
    options.keeping.load = file;
    options.keeping.trace = link;
    CHECK_THAT(complaint(options), ContainsSubstring("--trace and --load name one file"));
  }
  SECTION("but a checkpoint may take the place of the one it continues from") {
    options.keeping.load = file;
    CHECK_NOTHROW(tools::check_places(options, start_of(options)));
  }
}

TEST_CASE("a device stays a device, and a run that would save to it does not begin",
          "[tools][places][train]") {
  const TemporaryFolder folder;
  const std::string device = folder.path() + "/device";
  // Makes a node of its own, equal to /dev/full, so that the test uses no shared node.
  if (mknod(device.c_str(), S_IFCHR | 0600, makedev(1, 7)) != 0) {
    SKIP("no device node can be made here: " << std::strerror(errno));
  }
  const CommandResult result = run_train({"--stages", "2", "--save", device});
  CAPTURE(result.out, result.err);
  CHECK(result.exit_code == 2);
  CHECK(result.out.empty());
  CHECK_THAT(result.err, ContainsSubstring("--save: '" + device + "' is a device"));
  CHECK(fs::is_character_file(device));
  // The trace goes to it, and it is full.
  const CommandResult traced = run_train({"--stages", "2", "--trace", device});
  CHECK(traced.exit_code == 2);
  CHECK_THAT(traced.out, ContainsSubstring("done: step 3"));
  CHECK_THAT(traced.err, ContainsSubstring(std::strerror(ENOSPC)));
  CHECK(fs::is_character_file(device));
}

TEST_CASE("a run saves and traces through links, which stay links", "[tools][places][train]") {
  const TemporaryFolder folder, other;
  const std::string save = folder.path() + "/save", trace = folder.path() + "/trace";
  fs::create_symlink(other.write("a.ckpt", "old"), save);
  fs::create_symlink(other.path() + "/new.json", trace);
  (void)train_json({"--stages", "2", "--steps", "2", "--save", save, "--trace", trace});
  CHECK(fs::is_symlink(save));
  CHECK(fs::is_symlink(trace));
  CHECK(nlohmann::json::parse(read_text_file(other.path() + "/new.json")).contains("traceEvents"));
  CHECK(train_json({"--stages", "2", "--load", other.path() + "/a.ckpt"}).steps.size() == 1);
  CHECK(entries(folder.path()) == 2);
  CHECK(entries(other.path()) == 2);
}

TEST_CASE("a trace into standard output comes behind what a file there has",
          "[tools][places][train]") {
  const TemporaryFolder folder;
  std::vector<std::string> words{"bash", "-c", "echo first > out; \"$@\" >> out", "bash"};
  const auto run = small_train({"--stages", "2", "--trace", "/dev/stdout"});
  words.insert(words.end(), run.begin(), run.end());
  CHECK(run_command(words, folder.path()).exit_code == 0);
  const std::string out = read_text_file(folder.path() + "/out");
  CHECK(out.starts_with("first\n"));
  CHECK_THAT(out, ContainsSubstring("traceEvents") && ContainsSubstring("done: step 3"));
}

TEST_CASE("a file that standard output goes to is not taken from it", "[tools][places][train]") {
  const TemporaryFolder folder;
  const std::string option = GENERATE("--trace", "--save");
  CAPTURE(option);
  std::vector<std::string> words{"bash", "-c", "\"$@\" > same.txt", "bash"};
  const auto run = small_train({"--stages", "2", option, "same.txt"});
  words.insert(words.end(), run.begin(), run.end());
  const CommandResult result = run_command(words, folder.path());
  CAPTURE(result.err);
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.err,
             ContainsSubstring(option + " names 'same.txt', to which standard output goes"));
  CHECK(read_text_file(folder.path() + "/same.txt").empty());
}

TEST_CASE("a run that cannot continue from its checkpoint leaves an older trace as it is",
          "[tools][places][train]") {
  const TemporaryFolder folder;
  const std::string trace = folder.write("trace.json", "old");
  const CommandResult result = run_train(
      {"--stages", "2", "--trace", trace, "--load", folder.write("foreign", "no checkpoint")});
  CHECK(result.exit_code == 2);
  CHECK(read_text_file(trace) == "old");
}

TEST_CASE("a checkpoint that cannot be saved at the end costs neither the tables nor the old one",
          "[tools][places][train]") {
  const TemporaryFolder folder;
  const std::string save = folder.write("a.ckpt", "old");
  // Simulates a full disk when the checkpoint comes: no file may have more than 1 KiB.
  std::vector<std::string> words{"bash", "-c", "ulimit -f 1; \"$@\"", "bash"};
  const auto run = small_train({"--stages", "2", "--save", save});
  words.insert(words.end(), run.begin(), run.end());
  const CommandResult result = run_command(words, folder.path());
  CAPTURE(result.out, result.err);
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.out, ContainsSubstring("done: step 3") && !ContainsSubstring("saved step"));
  CHECK_THAT(result.err, ContainsSubstring(save) && ContainsSubstring(std::strerror(EFBIG)));
  CHECK(read_text_file(save) == "old");
  CHECK(entries(folder.path()) == 1);
}

TEST_CASE("everything that could not be written at the end is named (TN-2)",
          "[tools][places][train]") {
  const TemporaryFolder folder;
  const std::string save = folder.path() + "/a.ckpt", trace = folder.path() + "/trace.json";
  std::vector<std::string> words{"bash", "-c", "ulimit -f 1; \"$@\"", "bash"};
  const auto run = small_train({"--stages", "2", "--save", save, "--trace", trace});
  words.insert(words.end(), run.begin(), run.end());
  const CommandResult result = run_command(words, folder.path());
  CAPTURE(result.out, result.err);
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.out, ContainsSubstring("done: step 3"));
  CHECK_THAT(result.err, ContainsSubstring(save) && ContainsSubstring(trace));
  CHECK(nlohmann::json::parse(read_text_file(trace)).contains("traceEvents"));
}

}  // namespace stagecraft::tests
