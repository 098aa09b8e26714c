#include "stagecraft/futures/wait.h"

#include <thread>
#include <vector>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft {
namespace {

TEST_CASE("wait_all is true when the last future is complete, with a value or an error",
          "[futures][wait]") {
  std::vector<Promise<int>> promises(3);
  std::vector<Future<int>> futures;
  for (const Promise<int>& promise : promises) {
    futures.push_back(promise.future());
  }
  promises[0].set_value(1);
  promises[2].set_error(Error(Errc::Cancelled, "gone"));
  CHECK_FALSE(wait_all(futures, already_over()));
  std::thread other([&] { promises[1].set_value(2); });
  CHECK(wait_all(futures, patience()));
  other.join();
  CHECK(wait_all(std::vector<Future<int>>(), already_over()));
}

TEST_CASE("wait_any names a complete future, also one that completes while it waits",
          "[futures][wait]") {
  std::vector<Promise<int>> promises(3);
  std::vector<Future<int>> futures;
  for (const Promise<int>& promise : promises) {
    futures.push_back(promise.future());
  }
  CHECK_FALSE(wait_any(futures, already_over()).has_value());
  std::thread other([&] { promises[2].set_error(Error(Errc::Cancelled, "gone")); });
  CHECK(wait_any(futures, patience()) == 2);
  other.join();
  promises[1].set_value(1);
  CHECK(wait_any(futures, already_over()) == 1);
  CHECK_FALSE(wait_any(std::vector<Future<int>>(), already_over()).has_value());
}

}  // namespace
}  // namespace stagecraft
