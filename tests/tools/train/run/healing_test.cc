#include "stagecraft/tools/train/run/healing.h"

#include "stagecraft/base/manual_clock.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tools {
namespace {

using Catch::Matchers::ContainsSubstring;

const std::vector<Rank> kRanks{Rank(0), Rank(1), Rank(2)};

Error lost(int rank, const std::string& task = "") {
  return Error(Errc::WorkerLost, "it is lost").with({.rank = Rank(rank), .task = task});
}

Error about(Errc code, std::optional<Rank> rank) {
  return Error(code, "it failed").with({.rank = rank});
}

/// Admits failures at instants that the test sets.
struct Judge {
  explicit Judge(std::int64_t restarts) : healing(limits(restarts), kRanks, clock) {}

  static HealingLimits limits(std::int64_t restarts) {
    return {.restarts = restarts, .window = std::chrono::duration<double>(60.0)};
  }

  /// Returns the text of the error that ends the run; empty if it goes on.
  std::string judge(const Error& failure,
                    std::int64_t step,
                    std::optional<RunWork> work = RunWork::Step) {
    try {
      healing.admit(failure, step, work);
      return "";
    } catch (const Error& ended) {
      CHECK(ended == failure);
      return ended.message();
    }
  }

  const std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>();
  Healing healing;
};

}  // namespace

TEST_CASE("only what another worker may remove is healed (HG-1)", "[tools][restarts]") {
  CHECK(is_healable(lost(1), kRanks));
  CHECK(is_healable(about(Errc::WorkerLost, std::nullopt), kRanks));
  for (const Errc code : {Errc::ClusterTimeout, Errc::DeviceOutOfMemory}) {
    CHECK(is_healable(about(code, Rank(2)), kRanks));
    CHECK_FALSE(is_healable(about(code, std::nullopt), kRanks));  // nobody is to blame
    CHECK_FALSE(is_healable(about(code, kDriver), kRanks));
    CHECK_FALSE(is_healable(about(code, Rank(3)), kRanks));
  }
  // A thread of this process is not replaced, and its error is the one to show.
  for (const Errc code : {Errc::WorkerLost, Errc::ClusterTimeout, Errc::DeviceOutOfMemory}) {
    CHECK(is_healable(about(code, Rank(1)), {Rank(1), Rank(2)}));
    CHECK_FALSE(is_healable(about(code, Rank(0)), {Rank(1), Rank(2)}));
  }
  for (const Errc code : {Errc::WorkerFailed,
                          Errc::NonFinite,
                          Errc::UsageArgument,
                          Errc::UsageFile,
                          Errc::CompileShape,
                          Errc::CheckpointFormat,
                          Errc::Internal}) {
    CHECK_FALSE(is_healable(about(code, Rank(1)), kRanks));
  }
}

TEST_CASE("without restarts, and for an error of the model, a failure ends the run as it is",
          "[tools][restarts]") {
  Judge none(0), some(3);
  CHECK(none.judge(lost(1, "1F0"), 5) == "it is lost");
  CHECK(some.judge(about(Errc::WorkerFailed, Rank(1)), 5) == "it failed");
  CHECK(some.healing.restarts() == 0);
}

TEST_CASE("as many failures as --restarts says are healed, those on the way too (HG-3)",
          "[tools][restarts]") {
  Judge twice(2), once(1);
  CHECK(twice.judge(lost(1), 5).empty());
  CHECK(twice.judge(lost(2), 5, /*work=*/std::nullopt).empty());
  CHECK(twice.healing.restarts() == 2);
  CHECK(twice.judge(lost(1), 9) == "it is lost; the 2 restarts of --restarts are used up");
  CHECK(once.judge(lost(1), 5).empty());
  CHECK(once.judge(lost(1), 6) == "it is lost; the restart of --restarts 1 is used up");
}

TEST_CASE("a task that fails twice in its step ends the run (HG-2)", "[tools][restarts]") {
  Judge judge(20);
  const auto later = [&] { judge.clock->advance(std::chrono::seconds(60)); };
  CHECK(judge.judge(lost(1, "1F3"), 5).empty());
  CHECK(judge.judge(lost(1, "1F4"), 5).empty());  // another microbatch
  CHECK(judge.judge(lost(1, "1F3"), 6).empty());  // another step
  CHECK(judge.judge(lost(1), 5).empty());         // nobody knows in which task
  CHECK(judge.judge(lost(1, "1F3"), 5, /*work=*/std::nullopt).empty());
  later();
  CHECK(judge.judge(lost(2, "1F3"), 5).empty());  // a copy, on other samples
  CHECK(judge.judge(lost(1, "1F3"), 5, RunWork::Evaluation).empty());
  CHECK_THAT(judge.judge(lost(1, "1F3"), 5),
             ContainsSubstring("it is lost; task 1F3 of step 5 has failed twice"));
  CHECK_THAT(judge.judge(lost(1, "1F3"), 5, RunWork::Evaluation),
             ContainsSubstring("task 1F3 of the evaluation after step 4 has failed twice"));
}

TEST_CASE("too many failures in a short time end the run", "[tools][restarts]") {
  Judge judge(100);
  auto fail = [&, step = 0]() mutable { return judge.judge(lost(1), ++step); };
  for (int i = 0; i < HealingLimits::kMostInWindow; ++i) {
    CHECK(fail().empty());
    judge.clock->advance(std::chrono::seconds(12));
  }
  CHECK(fail().empty());  // 60 s after the first
  CHECK_THAT(fail(),
             ContainsSubstring("5 restarts within 60 s have not helped") &&
                 ContainsSubstring("--restart-window"));
}

}  // namespace stagecraft::tools
