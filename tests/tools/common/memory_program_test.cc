/// Tests runs that no memory suffices for: they are refused with the bill before anything is built,
/// or report lack of memory if they fail later. No test here takes much memory.

#include <algorithm>
#include <cstdint>

#include <nlohmann/json.hpp>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/tools/train/run/train_run.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

/// Replaces a default by one more option.
CommandResult run_with(std::vector<std::string> more) {
  if (std::find(more.begin(), more.end(), "--heads") == more.end()) {
    more.insert(more.end(), {"--heads", "1"});
  }
  return run_train(more);
}

void check_refused(const CommandResult& result) {
  CAPTURE(result.out, result.err);
  CHECK(result.exit_code == 1);
  CHECK_FALSE(result.timed_out);
  CHECK(result.out.empty());
  CHECK(result.err.starts_with("stagecraft: memory does not suffice: "));
  for (const char* part : {"weights of the model",
                           "weights, gradients, 2 optimizer states of all ranks",
                           "activations",
                           "in total, to run",
                           "this machine",
                           "to need less memory, reduce: --dim",
                           "--force"}) {
    CHECK_THAT(result.err, ContainsSubstring(part));
  }
  CHECK_THAT(result.err, !ContainsSubstring("bug"));
}

/// Skips if the test may not limit the program's address space.
CommandResult run_limited(std::int64_t kibibytes, const std::vector<std::string>& more) {
#ifdef __SANITIZE_ADDRESS__
  SKIP("the address sanitizer takes terabytes of address space");
#endif
  std::vector<std::string> words{
      "bash", "-c", "ulimit -v " + std::to_string(kibibytes) + "; exec \"$@\"", "bash"};
  const auto run = small_train(more);
  words.insert(words.end(), run.begin(), run.end());
  return run_command(words);
}

/// Returns the bill of a dry run that ends well.
nlohmann::json bill_within(std::int64_t kibibytes, const std::vector<std::string>& dry) {
  const CommandResult result = run_limited(kibibytes, dry);
  CAPTURE(result.out, result.err);
  REQUIRE(result.exit_code == 0);
  return nlohmann::json::parse(result.out).at("memory");
}

/// Returns what the bill's limit on the address space leaves. Units: bytes.
double left_by_limit(const nlohmann::json& bill) {
  for (const nlohmann::json& limit : bill.at("limits")) {
    if (limit.at("who").get<std::string>().starts_with("ulimit -v")) {
      return limit.at("bytes");
    }
  }
  FAIL("the bill has no limit on the address space");
  return 0.0;
}

}  // namespace

TEST_CASE("a model that no machine holds is refused before it is built", "[tools][memory][train]") {
  const std::vector<std::string> more =
      GENERATE(std::vector<std::string>{"--dim", "1000000"},
               std::vector<std::string>{"--dim", "2147483646"},
               std::vector<std::string>{"--dim", "1000000", "--ffn", "2147483647"},
               std::vector<std::string>{"--layers", "2147483647"},
               std::vector<std::string>{"--microbatch-size", "2147483647"});
  CAPTURE(more);
  check_refused(run_with(more));
  std::vector<std::string> dry = more;
  dry.emplace_back("--dry-run");
  check_refused(run_with(dry));
}

TEST_CASE(
    "a run that is too large for its address space is refused with the bill, where a dry run "
    "shows it",
    "[tools][memory][train]") {
  // 170 MB of weights fit into a dry run, but not nine times as much beside the threads.
  const std::vector<std::string> model{"--layers", "4", "--dim", "1024", "--ffn", "2048"};
  std::vector<std::string> dry = model;
  dry.insert(dry.end(), {"--dry-run", "--json"});
  // The program and its libraries take varying amounts. The limit is their amount plus, for the
  // model, the middle between the needs of compiling and of running.
  constexpr std::int64_t kPlenty = 64'000'000;
  const nlohmann::json plenty = bill_within(kPlenty, dry);
  const double program = static_cast<double>(kPlenty) * 1024.0 - left_by_limit(plenty);
  const double half =
      (plenty.at("to_compile_bytes").get<double>() + plenty.at("to_run_bytes").get<double>()) / 2;
  const auto limit = static_cast<std::int64_t>((program + half) / 1024.0);

  const CommandResult refused = run_limited(limit, model);
  check_refused(refused);
  CHECK_THAT(refused.err, ContainsSubstring("ulimit -v"));

  const nlohmann::json memory = bill_within(limit, dry);
  CHECK(memory.at("fits") == false);
  CHECK(memory.at("to_run_bytes") > left_by_limit(memory));
  CHECK(memory.at("to_compile_bytes") < left_by_limit(memory));
}

TEST_CASE("what fails for lack of memory all the same is told as that", "[tools][memory][train]") {
  const CommandResult result =
      run_limited(2'000'000, {"--dim", "1000000", "--heads", "4", "--force"});
  CAPTURE(result.out, result.err);
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.err,
             ContainsSubstring("stagecraft: memory ran out at 3.6 TiB in one piece") &&
                 ContainsSubstring("to need less memory, reduce: --dim"));
  CHECK_THAT(result.err, !ContainsSubstring("bug") && !ContainsSubstring("frame #"));
}

TEST_CASE("wherever a run meets the limit of its address space, it says so and ends",
          "[tools][memory][train]") {
  int ended = 0;
  for (std::int64_t limit = 700'000; limit <= 1'400'000; limit += 100'000) {
    const CommandResult result = run_limited(limit, {"--steps", "2", "--force"});
    CAPTURE(limit, result.exit_code, result.err);
    CHECK_FALSE(result.timed_out);
    if (result.exit_code != 0) {
      ++ended;
      CHECK(result.exit_code == 1);
      CHECK_THAT(result.err, ContainsSubstring("stagecraft: ") && ContainsSubstring("memory"));
      CHECK_THAT(result.err, !ContainsSubstring("bug") && !ContainsSubstring("frame #"));
    }
  }
  CHECK(ended > 0);
}

TEST_CASE("a worker that needs more than --memory-limit ends the run with what it holds",
          "[tools][memory][train]") {
  const CommandResult result =
      run_train({"--stages", "2", "--dim", "256", "--seq", "128", "--memory-limit", "1M"});
  CAPTURE(result.out, result.err);
  CHECK(result.exit_code == 1);
  CHECK_THAT(result.err,
             ContainsSubstring("step 1 failed: memory ran out at ") &&
                 ContainsSubstring("B live and ") &&
                 ContainsSubstring("its --memory-limit is 1.0 MiB"));
  const CommandResult enough = run_train({"--stages", "2", "--memory-limit", "1G"});
  CAPTURE(enough.out, enough.err);
  CHECK(enough.exit_code == 0);
  CHECK_THAT(enough.out, ContainsSubstring("most memory: rank "));
}

TEST_CASE("a dry run tells what a run will hold", "[tools][memory][train]") {
  const CommandResult result = run_train({"--stages", "2", "--dry-run"});
  CAPTURE(result.out, result.err);
  CHECK(result.exit_code == 0);
  for (const char* part : {"weights of the model",
                           "activations of all ranks",
                           "cached by the pools of the ranks",
                           "to compile",
                           "to run",
                           "left by"}) {
    CHECK_THAT(result.out, ContainsSubstring(part));
  }
}

TEST_CASE("a text without end, and one from a device, are refused", "[tools][memory][train]") {
  const CommandResult result = run_train({"--text", "/dev/zero"});
  CAPTURE(result.out, result.err);
  CHECK(result.exit_code == 2);
  CHECK_THAT(result.err, ContainsSubstring("found a device at '/dev/zero'"));
}

}  // namespace stagecraft::tests
