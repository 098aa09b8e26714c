#include "stagecraft/scheduler/search/failed_states.h"

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

const FailedStates::Key kKey = FailedStates::key_of({1, 2, 3});

TEST_CASE("a state fails where one that failed has nothing later", "[scheduler][search]") {
  FailedStates failed;
  CHECK_FALSE(failed.covers(kKey, {-5, -7}));
  failed.add(kKey, {-5, -7});
  CHECK(failed.covers(kKey, {-5, -7}));
  CHECK(failed.covers(kKey, {-4, -7}));
  CHECK_FALSE(failed.covers(kKey, {-6, 0}));
  CHECK_FALSE(failed.covers(kKey, {0, -8}));
  CHECK_FALSE(failed.covers(FailedStates::key_of({1, 3, 2}), {-5, -7}));
}

TEST_CASE("a failed state stands beside those that are neither earlier nor later",
          "[scheduler][search]") {
  FailedStates failed;
  failed.add(kKey, {-5, -7});
  failed.add(kKey, {-7, -5});
  failed.add(kKey, {-8, -3});
  CHECK(failed.covers(kKey, {-5, -7}));
  CHECK(failed.covers(kKey, {-7, -5}));
  CHECK(failed.covers(kKey, {-8, -3}));
  // A state that covers another replaces it, and all are still known.
  failed.add(kKey, {-6, -9});
  CHECK(failed.covers(kKey, {-5, -7}));
  CHECK(failed.covers(kKey, {-6, -9}));
  CHECK(failed.covers(kKey, {-7, -5}));
  CHECK_FALSE(failed.covers(kKey, {-7, -6}));
}

}  // namespace
}  // namespace stagecraft
