/// Returns the message that a user reads whose wrong use is refused.
#pragma once

#include <string>

#include "stagecraft/base/error.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {

/// Returns the message of the Error that `work` throws, whose code must be `expected`; fails the
/// test if it throws none.
template <class Work>
std::string refusal(Work&& work, Errc expected = Errc::UsageArgument) {
  try {
    work();
  } catch (const Error& error) {
    CHECK(error.code() == expected);
    return error.message();
  }
  FAIL("it was accepted");
  return "";
}

}  // namespace stagecraft
