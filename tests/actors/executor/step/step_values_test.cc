#include "stagecraft/actors/executor/step/step_values.h"

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft {
namespace {

constexpr StepValueName kLoss{kLossValue, Microbatch(0)};

StepValues::Place place(std::int64_t submission, int rank = 0) {
  return {PlanId(7), Rank(rank), Submission(submission)};
}

std::int64_t loss_in(const Future<MadeValues>& values) {
  REQUIRE(values.wait_until(patience()));
  return number_in(values.get().at(kLoss));
}

TEST_CASE("values of a step meet their taker, in either order (SVA-1)", "[executor][step-values]") {
  StepValues values;
  const Future<MadeValues> early = values.take(place(1));
  CHECK_FALSE(early.ready());
  values.put(place(1), {{kLoss, number(10)}});
  CHECK(loss_in(early) == 10);
  values.put(place(2), {{kLoss, number(20)}});
  values.put(place(2, 1), {{kLoss, number(21)}});
  CHECK(loss_in(values.take(place(2))) == 20);
  CHECK(loss_in(values.take(place(2, 1))) == 21);
  CHECK_FALSE(values.take(place(2)).ready());  // taken: nothing is kept
}

TEST_CASE("a later step of the rank ends the wait for one that failed (SVA-2)",
          "[executor][step-values]") {
  StepValues values;
  const Future<MadeValues> failed = values.take(place(1)), elsewhere = values.take(place(1, 1)),
                           later = values.take(place(3));
  values.put(place(2), {{kLoss, number(20)}});
  CHECK(failure_of(failed) == Errc::Cancelled);
  CHECK_FALSE(elsewhere.ready());
  CHECK_FALSE(later.ready());
  CHECK(loss_in(values.take(place(2))) == 20);
}

TEST_CASE("values of tasks go with the next step", "[executor][step-values]") {
  StepValues values;
  StepValues::Place task = place(1);
  task.task = 5;
  const at::Tensor watched = number(1);
  values.put(task, {{kLoss, watched}});
  const Future<MadeValues> whole = values.take(place(1));
  values.put(place(1), {{kLoss, number(10)}});
  CHECK(loss_in(whole) == 10);
  CHECK(watched.use_count() == 2);
  values.put(place(2), {});
  CHECK(watched.use_count() == 1);
}

TEST_CASE("nothing waits for a rank that has ended", "[executor][step-values]") {
  StepValues values;
  const at::Tensor watched = number(1);
  values.put(place(1), {{kLoss, watched}});
  values.put(place(1, 1), {{kLoss, watched}});
  const Future<MadeValues> waits = values.take(place(2));
  values.end(PlanId(7), Rank(0));
  CHECK(failure_of(waits) == Errc::Cancelled);
  CHECK(failure_of(values.take(place(3))) == Errc::Cancelled);
  CHECK(watched.use_count() == 2);  // the other rank's
  values.end(PlanId(7), Rank(1));
  CHECK(watched.use_count() == 1);
}

TEST_CASE("values that nobody takes do not pile up", "[executor][step-values]") {
  StepValues values;
  const at::Tensor watched = number(1);
  values.put(place(1), {{kLoss, watched}});
  values.put(place(1 + StepValues::kMostWaiting), {});
  CHECK(watched.use_count() == 2);
  values.put(place(2 + StepValues::kMostWaiting), {});
  CHECK(watched.use_count() == 1);
}

}  // namespace
}  // namespace stagecraft
