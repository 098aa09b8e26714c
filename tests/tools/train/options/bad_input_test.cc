/// Tests the response to bad input: one message that says what was expected, what was found and
/// what to do, and an exit status: 2 for wrong usage and unreadable files, 1 for a broken rule and
/// a failed run.

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/environment_variable.h"
#include "stagecraft/tests/support/listener.h"
#include "stagecraft/tests/tools/train/run/train_run.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

/// Checks that the command ends with `exit_code`, nothing on standard output and one message with
/// all `parts`.
void check_refused(const CommandResult& result,
                   int exit_code,
                   const std::vector<std::string>& parts) {
  CAPTURE(result.out, result.err);
  CHECK_FALSE(result.timed_out);
  CHECK(result.exit_code == exit_code);
  CHECK(result.err.starts_with("stagecraft: "));
  // The message appears once.
  CHECK(result.err.find("stagecraft: ", 1) == std::string::npos);
  for (const std::string& part : parts) {
    CHECK_THAT(result.err, ContainsSubstring(part));
  }
  for (const char* trace :
       {"terminate called", "frame #", "what():", "Exception raised from", "system_error("}) {
    CHECK_THAT(result.err, !ContainsSubstring(trace));
  }
}

void check_schedule_refused(const std::string& text,
                            int exit_code,
                            const std::vector<std::string>& parts) {
  const TemporaryFolder folder;
  CAPTURE(text);
  check_refused(run_train({"--schedule", folder.write("own.sched", text)}), exit_code, parts);
}

}  // namespace

TEST_CASE("no command, or one that is unknown, is wrong usage", "[tools][bad-input]") {
  check_refused(
      run_command({STAGECRAFT_COMMAND}), 2, {"expected a command", "  schedule ", "--help"});
  check_refused(run_command({STAGECRAFT_COMMAND, "trian"}), 2, {"'trian'", "did you mean train?"});
}

TEST_CASE("a variable of the environment that makes no sense is named", "[tools][bad-input]") {
  {
    const EnvironmentVariable ranks("STAGECRAFT_RANKS", "abc");
    check_refused(run_command({STAGECRAFT_COMMAND, "train", "--dry-run"}),
                  2,
                  {"stagecraft: STAGECRAFT_RANKS expects a whole number from 1 to ", "'abc'"});
  }
  const EnvironmentVariable workers("STAGECRAFT_WORKERS", "thread");
  check_refused(run_command({STAGECRAFT_COMMAND, "train", "--dry-run"}),
                2,
                {"STAGECRAFT_WORKERS expects threads, processes or joining, found 'thread'"});
  check_refused(run_command({STAGECRAFT_COMMAND, "train", "--workers", "process"}),
                2,
                {"--workers expects threads, processes or joining, found 'process'"});
}

TEST_CASE("help is at every level and good", "[tools]") {
  const CommandResult command = run_command({STAGECRAFT_COMMAND, "--help"});
  CHECK(command.exit_code == 0);
  CHECK_THAT(command.out, ContainsSubstring("train"));
  const CommandResult train = run_command({STAGECRAFT_COMMAND, "train", "--help"});
  CHECK(train.exit_code == 0);
  CHECK_THAT(train.out, ContainsSubstring("--schedule"));
}

TEST_CASE("the help of train names every variable of a cluster", "[tools]") {
  std::string help = run_command({STAGECRAFT_COMMAND, "train", "--help"}).out;
  std::ranges::replace_if(
      help, [](char c) { return c == ',' || c == '.' || c == '\n'; }, ' ');
  const std::string page = read_text_file(STAGECRAFT_SOURCE_DIR "/docs/environment.md");
  const std::size_t begin = page.find("## Clusters");
  std::istringstream lines(page.substr(begin, page.find("\n## ", begin) - begin));
  const std::string start = "| `STAGECRAFT_";
  int variables = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(start)) {
      CHECK_THAT(help, ContainsSubstring(" " + line.substr(3, line.find('`', 3) - 3) + " "));
      ++variables;
    }
  }
  CHECK(variables >= 16);
}

TEST_CASE("launch says where its program stands", "[tools][bad-input]") {
  const CommandResult help = run_command({STAGECRAFT_COMMAND, "launch", "--help"});
  CHECK_THAT(help.out,
             ContainsSubstring("Usage: stagecraft launch [OPTIONS] -- PROGRAM [ARGUMENTS]\n"));
  const std::vector<std::vector<std::string>> without{
      {}, {"train"}, {"train", "--steps", "20"}, {"x", "--", "train"}};
  for (const std::vector<std::string>& words : without) {
    std::vector<std::string> all{STAGECRAFT_COMMAND, "launch"};
    all.insert(all.end(), words.begin(), words.end());
    check_refused(run_command(all), 2, {"expected -- PROGRAM [ARGUMENTS]", "launch --help"});
  }
  check_refused(run_command({STAGECRAFT_COMMAND, "launch", "--no", "--", "train"}),
                2,
                {"expected an option of stagecraft launch, found '--no'"});
}

TEST_CASE("help COMMAND is COMMAND --help, in both programs of the command", "[tools]") {
  for (const std::vector<std::string>& words : {std::vector<std::string>{"train"},
                                                {"launch"},
                                                {"dag", "show"},
                                                {"schedule"},
                                                {"schedule", "make"}}) {
    std::vector<std::string> asked{STAGECRAFT_COMMAND, "help"}, option{STAGECRAFT_COMMAND};
    asked.insert(asked.end(), words.begin(), words.end());
    option.insert(option.end(), words.begin(), words.end());
    option.emplace_back("--help");
    const CommandResult result = run_command(asked);
    CAPTURE(asked, result.err);
    CHECK(result.exit_code == 0);
    CHECK_FALSE(result.out.empty());
    CHECK(result.out == run_command(option).out);
  }
  check_refused(
      run_command({STAGECRAFT_COMMAND, "help", "trian"}), 2, {"'trian'", "did you mean train?"});
}

TEST_CASE("the command says which version it is, and which commit if that is known", "[tools]") {
  const CommandResult result = run_command({STAGECRAFT_COMMAND, "--version"});
  CHECK(result.exit_code == 0);
  const std::string source = STAGECRAFT_SOURCE_DIR;
  const bool has_history = std::filesystem::exists(source + "/.git") &&
                           run_command({"git", "rev-parse", "HEAD"}, source).exit_code == 0;
  CHECK_THAT(result.out,
             Catch::Matchers::Matches(std::string("stagecraft [0-9]+\\.[0-9]+\\.[0-9]+") +
                                      (has_history ? " \\([0-9a-f]{9,40}\\)\n" : "\n")));
  for (const char* word : {"-v", "-V"}) {
    check_refused(run_command({STAGECRAFT_COMMAND, word}),
                  2,
                  {std::string("'") + word + "'", "stagecraft --version prints the version"});
  }
}

TEST_CASE("joining workers without credentials are refused, with what to do",
          "[tools][bad-input]") {
  check_refused(run_train({"--workers", "joining", "--stages", "2"}),
                2,
                {"--credentials DIR,", "stagecraft worker --join HOST:PORT"});
}

TEST_CASE("a port at which somebody else listens is named, with the variables to set",
          "[tools][bad-input]") {
  const Listener somebody;
  const std::string port = std::to_string(somebody.port());
  const EnvironmentVariable variable("STAGECRAFT_PORT", port);
  check_refused(run_train({"--workers", "processes", "--stages", "2"}),
                1,
                {"cannot listen for workers at ",
                 ":" + port + " (the address is not of this host, or the port is taken)",
                 "name an address of this host and a free port",
                 "STAGECRAFT_PORT"});
}

TEST_CASE("an unknown option is wrong usage", "[tools][bad-input]") {
  check_refused(run_train({"--layerz", "3"}), 2, {"'--layerz'", "did you mean --layers?"});
}

TEST_CASE("zero, negative and meaningless numbers are wrong usage", "[tools][bad-input]") {
  check_refused(run_train({"--layers", "0"}), 2, {"--layers expects", "'0'"});
  check_refused(run_train({"--microbatches", "-2"}), 2, {"--microbatches expects", "'-2'"});
  check_refused(run_train({"--lr", "0"}), 2, {"--lr expects", "'0'"});
}

TEST_CASE("an unknown schedule name is wrong usage", "[tools][bad-input]") {
  check_refused(run_train({"--schedule", "1f1v"}), 2, {"'1f1v'", "did you mean 1f1b?", "gpipe"});
  check_refused(run_train({"--schedule", "/none/own.sched"}), 2, {"/none/own.sched"});
}

TEST_CASE("a text that cannot be used is wrong usage", "[tools][bad-input]") {
  const TemporaryFolder folder;
  check_refused(run_train({"--text", folder.path() + "/none"}), 2, {"no file", "--text"});
  check_refused(run_train({"--text", folder.path()}), 2, {"a directory", "--text"});
  check_refused(run_train({"--text", folder.write("empty", "")}), 2, {"an empty file", "--text"});
  check_refused(
      run_train({"--text", folder.write("short", "seventeen bytes..")}), 2, {"17 bytes", "--seq"});
}

TEST_CASE("more stages than layers is wrong usage", "[tools][bad-input]") {
  check_refused(run_train({"--stages", "5"}), 2, {"--stages", "4", "5"});
}

TEST_CASE("heads that do not divide dim are wrong usage", "[tools][bad-input]") {
  check_refused(run_train({"--heads", "3"}), 2, {"--heads", "32", "3"});
}

TEST_CASE("a schedule file that cannot be read as one is wrong usage", "[tools][bad-input]") {
  check_schedule_refused("0F0 what 0B0\n", 2, {"what"});
  check_schedule_refused("@pages 4\n0F0 0B0\n", 2, {"pages"});
  check_schedule_refused("", 2, {"own.sched"});
}

TEST_CASE("a schedule file with too few rows fails, and says which rule", "[tools][bad-input]") {
  check_schedule_refused(
      "@rows 2\n@microbatches 4\n@stages 1\n0F0 0F1 0F2 0F3 0B0 0B1 0B2 0B3\n", 1, {"V02"});
  check_schedule_refused(
      "@stages 2\n@microbatches 4\n0F0 0F1 0F2 0F3 0B0 0B1 0B2 0B3\n", 1, {"V09"});
}

TEST_CASE("a schedule file that breaks a rule fails, drawn as a grid", "[tools][bad-input]") {
  check_schedule_refused(
      "@microbatches 4\n"
      "0F0 0F1 0F2 0F3 .   0B0 0B1 0B2 0B3\n"
      ".   1F0 1F1 1F2 1B0 1F3 1B1 1B2 1B3\n",
      1,
      {"V22", "0B1", "1B1"});
}

TEST_CASE("a flag that contradicts the schedule file is wrong usage", "[tools][bad-input]") {
  const TemporaryFolder folder;
  const std::string file =
      folder.write("own.sched", "0F0 0F1 .   0B0 .   0B1\n.   1F0 1B0 1F1 1B1 .\n");
  check_refused(
      run_train({"--schedule", file, "--microbatches", "4"}), 2, {"--microbatches", "2", "4"});
  check_refused(run_train({"--schedule", file, "--microbatches", "2", "--stages", "4"}),
                2,
                {"--stages", "2", "4"});
}

TEST_CASE("a checkpoint that does not belong to the run is refused", "[tools][bad-input]") {
  const TemporaryFolder folder;
  const std::string file = folder.path() + "/two.ckpt";
  REQUIRE(run_train({"--stages", "2", "--steps", "1", "--save", file}).exit_code == 0);
  check_refused(run_train({"--stages", "2", "--layers", "3", "--load", file}), 2, {"layers.3"});
  check_refused(run_train({"--stages", "2", "--dim", "16", "--load", file}), 2, {"32", "16"});
  check_refused(
      run_train({"--stages", "2", "--steps", "1", "--load", file}), 2, {"--steps", "step 1"});
  check_refused(run_train({"--load", folder.path() + "/none"}), 2, {"none"});
  check_refused(
      run_train({"--load", folder.write("foreign", "not a checkpoint at all")}), 2, {"foreign"});
  const std::string whole = read_text_file(file);
  check_refused(
      run_train({"--load", folder.write("cut", whole.substr(0, whole.size() / 2))}), 2, {"cut"});
}

TEST_CASE("a place to save that does not exist is noticed before training", "[tools][bad-input]") {
  check_refused(run_train({"--save", "/none/there/x.ckpt"}), 2, {"--save", "/none/there"});
}

TEST_CASE("a loss that is no number stops the run with step and stage", "[tools][bad-input]") {
  const CommandResult result =
      run_train({"--stages", "2", "--optimizer", "sgd", "--lr", "1e30", "--steps", "8", "--json"});
  CAPTURE(result.out, result.err);
  CHECK(result.exit_code == 1);
  CHECK_FALSE(result.timed_out);
  CHECK_THAT(result.err, ContainsSubstring("step 2 failed") && ContainsSubstring("stage 1"));
  CHECK_THAT(result.out, ContainsSubstring("\"step\":1,") && !ContainsSubstring("\"step\":2,"));
  CHECK_THAT(result.out, !ContainsSubstring("\"done\""));
}

}  // namespace stagecraft::tests
