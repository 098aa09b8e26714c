/// Tests output that does not arrive: a full disk, a closed stream, a reader that has ended. Every
/// command says so and ends with 2, and a run does not lose the files it was to keep.

#include <filesystem>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/tools/train/run/train_run.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

/// Returns a line of bash that sends standard output to `output`; `words` are the command's.
std::string line_of(const std::string& output) {
  if (output == "nobody") {
    // The pipe's only reader ends before the command begins.
    return "mkfifo pipe; exec 3<>pipe; exec 4>pipe; exec 3<&-; \"$@\" >&4";
  }
  return "\"$@\" " + output;
}

CommandResult run_into(const std::string& output,
                       const std::vector<std::string>& words,
                       const std::string& folder) {
  std::vector<std::string> all{"bash", "-c", line_of(output), "bash"};
  all.insert(all.end(), words.begin(), words.end());
  return run_command(all, folder);
}

std::vector<std::string> command(const std::vector<std::string>& words) {
  std::vector<std::string> all{STAGECRAFT_COMMAND};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

void check_told(const CommandResult& result, const std::string& why) {
  CAPTURE(result.out, result.err);
  CHECK(result.exit_code == 2);
  CHECK_FALSE(result.timed_out);
  CHECK_THAT(result.err,
             ContainsSubstring("stagecraft: standard output cannot be written: " + why));
  CHECK(result.err.find('\n') == result.err.size() - 1);  // one message
}

struct Output {
  std::string where, why;
};

const Output kFull{"> /dev/full", "No space left on device"};
const Output kClosed{">&-", "it is closed"};
const Output kNobody{"nobody", "nobody reads it any more"};

}  // namespace

TEST_CASE("every command says that its output was lost, and ends with 2", "[tools][output]") {
  const std::vector<std::string> words =
      GENERATE(command({"--help"}),
               command({"--version"}),
               command({"train", "--help"}),
               command({"schedule", "--help"}),
               command({"schedule", "make", "--help"}),
               command({"credentials", "--help"}),
               command({"credentials", "make", "--help"}),
               command({"trace", "--help"}),
               command({"trace", "compare", "--help"}),
               command({"schedule", "list"}),
               command({"schedule", "show", "plan.txt"}),
               command({"schedule", "check", "plan.txt", "--json"}),
               command({"schedule", "fix", "plan.txt"}));
  CAPTURE(words);
  for (const Output& output : {kFull, kClosed, kNobody}) {
    const TemporaryFolder folder;
    (void)folder.write("plan.txt", "0F0 0B0\n");
    check_told(run_into(output.where, words, folder.path()), output.why);
  }
}

TEST_CASE("a run and a dry run say that their output was lost, and end with 2",
          "[tools][output][train]") {
  const std::vector<std::string> more = GENERATE(std::vector<std::string>{},
                                                 std::vector<std::string>{"--json"},
                                                 std::vector<std::string>{"--dry-run"},
                                                 std::vector<std::string>{"--dry-run", "--json"});
  const Output output = GENERATE(kFull, kClosed, kNobody);
  CAPTURE(more, output.where);
  const TemporaryFolder folder;
  check_told(run_into(output.where, small_train(more), folder.path()), output.why);
}

TEST_CASE("a run that keeps nothing ends when nobody reads any more", "[tools][output][train]") {
  const TemporaryFolder folder;
  const CommandResult result =
      run_into(kNobody.where, small_train({"--steps", "1000000000"}), folder.path());
  check_told(result, kNobody.why);
  CHECK_THAT(result.err, ContainsSubstring("the run ended before its first step"));
}

TEST_CASE(
    "a run that keeps something continues when nobody reads any more, and loses nothing (TN-3)",
    "[tools][output][train]") {
  const TemporaryFolder folder;
  const Output output = GENERATE(kFull, kClosed, kNobody);
  const std::string save = folder.path() + "/a.ckpt", trace = folder.path() + "/trace.json";
  const CommandResult result =
      run_into(output.where,
               small_train({"--stages", "2", "--save", save, "--trace", trace}),
               folder.path());
  check_told(result, output.why);
  CHECK_THAT(result.err, ContainsSubstring("the run continues for '" + save + "'"));
  // The checkpoint equals that of a run whose output arrived.
  const std::string whole = train_json({"--stages", "2", "--steps", "4"}).sha256();
  CHECK(train_json({"--stages", "2", "--steps", "4", "--load", save}).sha256() == whole);
  // No printed text got into a file that took the closed stream's number.
  CHECK(nlohmann::json::parse(read_text_file(trace)).at("traceEvents").size() > 3);
}

TEST_CASE("what a reader read before it ended is whole lines", "[tools][output][train]") {
  const TemporaryFolder folder;
  std::vector<std::string> words{"bash", "-c", "\"$@\" | head -n 1; exit ${PIPESTATUS[0]}", "bash"};
  const auto run = small_train({"--steps", "1000000000", "--json"});
  words.insert(words.end(), run.begin(), run.end());
  const CommandResult result = run_command(words, folder.path());
  check_told(result, kNobody.why);
  CHECK(nlohmann::json::parse(result.out).at("step") == 1);
}

TEST_CASE("a closed standard error costs no more than the message", "[tools][output]") {
  const TemporaryFolder folder;
  CHECK(run_into("2>&-", small_train({}), folder.path()).exit_code == 0);
  CHECK(run_into("2>&-", command({"schedule", "nonsense"}), folder.path()).exit_code == 2);
  CHECK(run_into("<&- >&- 2>&-", command({"schedule", "list"}), folder.path()).exit_code == 2);
}

}  // namespace stagecraft::tests
