#include "stagecraft/actors/driver/unfinished_update.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

StepInput batch_of(std::int64_t update, std::int32_t batch, bool updates, PartRuns parts = {}) {
  StepInput input;
  input.parts = std::move(parts);
  input.update = update;
  input.batch = batch;
  input.updates = updates;
  return input;
}

StepResult result_of(std::vector<double> losses, double seconds) {
  StepResult result{.losses = std::move(losses), .mean_loss = -1, .seconds = seconds};
  result.ranks.resize(1);
  return result;
}

TEST_CASE("an update of one batch passes through unchanged", "[actors][driver]") {
  UnfinishedUpdate update;
  CHECK_FALSE(update.begin(batch_of(0, 0, /*updates=*/true)));
  StepResult result = result_of({1, 2}, 3);
  result.timelines.resize(4);
  const StepResult passed = update.complete(result);
  CHECK(passed.losses == result.losses);
  CHECK(passed.mean_loss == -1);
  CHECK(passed.timelines.size() == 4);
  CHECK(update.accumulated() == 0);
}

TEST_CASE("UU-2: the last batch has the losses, the mean and the times of all",
          "[actors][driver]") {
  UnfinishedUpdate update;
  StepResult first = result_of({1, 2}, 1);
  first.bubble = 0.5;
  first.timelines.resize(1);
  first.ranks[0].forward = 10;
  first.ranks[0].peak_bytes = 700;
  CHECK_FALSE(update.begin(batch_of(5, 0, /*updates=*/false)));
  CHECK(update.complete(first).losses == std::vector<double>{1, 2});
  CHECK(update.accumulated() == 1);
  CHECK_FALSE(update.begin(batch_of(5, 1, /*updates=*/false)));
  CHECK(update.complete(result_of({3}, 0)).seconds == 0);
  CHECK(update.accumulated() == 2);

  StepResult last = result_of({6}, 3);
  last.bubble = 0.1;
  last.timelines.resize(2);
  last.ranks[0].forward = 4;
  last.ranks[0].peak_bytes = 600;
  // Its microbatch has twice as many samples.
  CHECK_FALSE(update.begin(batch_of(5, 2, true, {{.count = 1, .shape = 1, .weight = 2}})));
  const StepResult whole = update.complete(last);
  CHECK(whole.losses == std::vector<double>{1, 2, 3, 6});
  CHECK(whole.mean_loss == Catch::Approx((1 + 2 + 3 + 2 * 6) / 5.0));
  CHECK(whole.seconds == 4);
  CHECK(whole.bubble == Catch::Approx((0.5 * 1 + 0.1 * 3) / 4));
  CHECK(whole.timelines.size() == 2);
  CHECK(whole.ranks[0].forward == 14);
  CHECK(whole.ranks[0].peak_bytes == 700);
  CHECK(update.accumulated() == 0);
}

TEST_CASE("UU-1: a batch runs only after all before it of its update", "[actors][driver]") {
  UnfinishedUpdate update;
  const auto refused = [&](std::int64_t number, std::int32_t batch) {
    const std::optional<Error> why = update.begin(batch_of(number, batch, false));
    return why ? std::optional(why->code()) : std::nullopt;
  };
  CHECK(refused(0, 1) == Errc::WorkerAborted);
  CHECK_FALSE(refused(0, 0));
  (void)update.complete(result_of({1}, 1));
  CHECK(refused(0, 2) == Errc::WorkerAborted);
  CHECK(refused(0, 0) == Errc::WorkerAborted);  // it has run
  CHECK_FALSE(refused(0, 1));
  SECTION("another update begins with its own first batch") {
    CHECK(refused(1, 1) == Errc::WorkerAborted);
    CHECK(update.accumulated() == 0);
    CHECK_FALSE(refused(1, 0));
  }
}

TEST_CASE("UU-1: if a batch fails, all later ones of its update fail because of the first",
          "[actors][driver]") {
  UnfinishedUpdate update;
  (void)update.begin(batch_of(3, 0, false));
  (void)update.complete(result_of({100}, 1));
  (void)update.begin(batch_of(3, 1, false));
  update.fail(Error(Errc::WorkerFailed, "the first reason"));
  CHECK(update.accumulated() == 0);
  for (const std::int32_t later : {2, 3}) {
    const std::optional<Error> why = update.begin(batch_of(3, later, false));
    REQUIRE(why);
    CHECK(why->code() == Errc::WorkerAborted);
    CHECK_THAT(why->what(),
               ContainsSubstring("an earlier batch of this update has failed") &&
                   ContainsSubstring("the first reason"));
    update.fail(*why);
  }
  // The next update has nothing of the failed one.
  CHECK_FALSE(update.begin(batch_of(4, 0, false)));
  (void)update.complete(result_of({1}, 1));
  CHECK_FALSE(update.begin(batch_of(4, 1, true)));
  const StepResult whole = update.complete(result_of({3}, 1));
  CHECK(whole.losses == std::vector<double>{1, 3});
  CHECK(whole.mean_loss == 2);
}

}  // namespace
}  // namespace stagecraft
