/// Returns the error of a failed step, for tests that check more of it than its code.
#pragma once

#include "stagecraft/base/error.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft {

/// Returns the Error of `step`, a StepFuture or a Future; fails the test if it succeeds, or is not
/// over in time.
template <class Step>
Error error_of(const Step& step) {
  REQUIRE(step.wait_until(patience()));
  try {
    static_cast<void>(step.get());
  } catch (const Error& error) {
    return error;
  }
  FAIL("the step succeeded");
  return {Errc::Internal, ""};
}

/// Returns the Error that `work` throws; fails the test if it throws none.
template <class Work>
Error thrown_error(Work&& work) {
  try {
    work();
  } catch (const Error& error) {
    return error;
  }
  FAIL("nothing was thrown");
  return {Errc::Internal, ""};
}

}  // namespace stagecraft
