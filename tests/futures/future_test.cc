#include "stagecraft/futures/future.h"

#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <variant>
#include <vector>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft {
namespace {

static_assert(!std::is_copy_constructible_v<Promise<int>>,
              "two promises could complete one future");
static_assert(std::is_copy_constructible_v<Future<int>>);

TEST_CASE("a future has the value its promise was given, as often as it is read",
          "[futures][future]") {
  Promise<std::string> promise;
  const Future<std::string> future = promise.future();
  const Future<std::string> copy = future;
  CHECK_FALSE(future.ready());
  CHECK_FALSE(future.wait_until(already_over()));
  CHECK(promise.set_value("here"));
  CHECK(future.ready());
  CHECK(copy.wait_until(already_over()));
  CHECK(future.get() == "here");
  CHECK(copy.get() == "here");
}

TEST_CASE("a future rethrows the error it was completed with, context and cause included",
          "[futures][future]") {
  Promise<int> promise;
  Error error(Errc::WorkerFailed, "out of patience");
  error.because(Error(Errc::DeviceOutOfMemory, "no memory"));
  CHECK(promise.set_error(error));
  try {
    static_cast<void>(promise.future().get());
    FAIL("no error came out");
  } catch (const Error& thrown) {
    CHECK(thrown.code() == Errc::WorkerFailed);
    CHECK(thrown.message() == "out of patience");
    REQUIRE(thrown.cause() != nullptr);
    CHECK(thrown.cause()->code() == Errc::DeviceOutOfMemory);
  }
}

TEST_CASE("a cancelled future says so", "[futures][future]") {
  Promise<int> promise;
  CHECK(promise.cancel());
  CHECK(failure_of(promise.future()) == Errc::Cancelled);
}

TEST_CASE("the first completion counts and later ones report that they came too late (F-1)",
          "[futures][future]") {
  const int first = GENERATE(0, 1, 2);
  Promise<int> promise;
  const auto complete = [&promise](int how) {
    switch (how) {
      case 0:
        return promise.set_value(1);
      case 1:
        return promise.set_error(Error(Errc::WorkerFailed, "failed"));
      default:
        return promise.cancel();
    }
  };
  int callbacks = 0;
  promise.future().on_ready([&callbacks] { ++callbacks; });
  CHECK(complete(first));
  for (const int later : {0, 1, 2}) {
    CHECK_FALSE(complete(later));
  }
  CHECK(callbacks == 1);
  const std::optional<Errc> expected[] = {std::nullopt, Errc::WorkerFailed, Errc::Cancelled};
  CHECK(failure_of(promise.future()) == expected[first]);
}

TEST_CASE("a promise that is destroyed unfulfilled is an error for its readers (F-2)",
          "[futures][future]") {
  Future<int> future;
  SECTION("by its destructor") {
    const Promise<int> promise;
    future = promise.future();
  }
  SECTION("by being assigned over") {
    Promise<int> promise;
    future = promise.future();
    promise = Promise<int>();
    CHECK(future.ready());
  }
  REQUIRE(future.ready());
  CHECK(failure_of(future) == Errc::Internal);
}

TEST_CASE("a promise keeps its future when it moves", "[futures][future]") {
  Promise<int> promise;
  const Future<int> future = promise.future();
  {
    Promise<int> moved = std::move(promise);
    CHECK_FALSE(future.ready());
    CHECK(moved.set_value(5));
  }
  CHECK(future.get() == 5);
}

TEST_CASE("the use of an empty future or of a moved promise is our bug, and the error says so",
          "[futures][future]") {
  const Future<int> none;
  CHECK_FALSE(none.valid());
  CHECK(thrown_by([&] { static_cast<void>(none.get()); }) == Errc::Internal);
  CHECK(thrown_by([&] { static_cast<void>(none.ready()); }) == Errc::Internal);
  CHECK(thrown_by([&] { none.on_ready([] {}); }) == Errc::Internal);
  Promise<int> promise;
  const Promise<int> moved = std::move(promise);
  CHECK(thrown_by([&] { promise.set_value(1); }) ==
        Errc::Internal);  // NOLINT(bugprone-use-after-move)
  CHECK(thrown_by([&] { static_cast<void>(promise.future()); }) == Errc::Internal);
}

TEST_CASE("a future without a value completes too", "[futures][future]") {
  Promise<std::monostate> promise;
  const Future<std::monostate> future = promise.future();
  CHECK_FALSE(future.ready());
  promise.set_value({});
  CHECK(future.ready());
  CHECK_FALSE(failure_of(future));
}

TEST_CASE("callbacks run on the completing thread, late ones on the registering thread (F-4)",
          "[futures][future]") {
  Promise<int> promise;
  const Future<int> future = promise.future();
  std::vector<std::thread::id> ran_on;
  future.on_ready([&ran_on] { ran_on.push_back(std::this_thread::get_id()); });
  future.on_ready([&ran_on] { ran_on.push_back(std::this_thread::get_id()); });
  std::thread::id completing;
  std::jthread([&] {
    completing = std::this_thread::get_id();
    promise.set_value(1);
  }).join();
  CHECK(ran_on == std::vector{completing, completing});
  future.on_ready([&ran_on] { ran_on.push_back(std::this_thread::get_id()); });
  REQUIRE(ran_on.size() == 3);
  CHECK(ran_on[2] == std::this_thread::get_id());
}

TEST_CASE("a callback may use the future and register another (F-4)", "[futures][future]") {
  Promise<int> promise;
  const Future<int> future = promise.future();
  int seen = 0;
  future.on_ready([&] {
    seen = future.get();
    future.on_ready([&] { seen += future.get(); });
  });
  promise.set_value(21);
  CHECK(seen == 42);
}

TEST_CASE("a callback is destroyed after it has run", "[futures][future]") {
  const auto held = std::make_shared<int>(1);
  Promise<int> promise;
  const Future<int> future = promise.future();
  future.on_ready([held] {});
  CHECK(held.use_count() == 2);
  promise.set_value(1);
  CHECK(held.use_count() == 1);
}

TEST_CASE("the value lives as long as the last future (F-3)", "[futures][future]") {
  const auto value = std::make_shared<int>(1);
  Promise<std::shared_ptr<int>> promise;
  auto future = std::make_unique<Future<std::shared_ptr<int>>>(promise.future());
  promise.set_value(value);
  { const Promise<std::shared_ptr<int>> gone = std::move(promise); }
  CHECK(value.use_count() == 2);
  future.reset();
  CHECK(value.use_count() == 1);
}

TEST_CASE("exactly one of many threads that complete a promise succeeds (F-1)",
          "[futures][future]") {
  for (int round = 0; round < 50; ++round) {
    Promise<int> promise;
    const Future<int> future = promise.future();
    std::atomic<int> winners = 0;
    std::atomic<int> callbacks = 0;
    std::atomic<int> winner = -1;
    {
      std::vector<std::jthread> threads;
      for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
          future.on_ready([&] { ++callbacks; });
          if (promise.set_value(t)) {
            ++winners;
            winner = t;
          }
        });
      }
    }
    CHECK(winners == 1);
    CHECK(callbacks == 4);
    CHECK(future.get() == winner);
  }
}

TEST_CASE("get waits for a value that another thread sets", "[futures][future]") {
  Promise<int> promise;
  std::jthread completing([&promise] { promise.set_value(7); });
  const Future<int> future = promise.future();
  CHECK(future.wait_until(patience()));
  CHECK(future.get() == 7);
}

/// Counts what a future tells its origin.
struct CountingOrigin final : FutureOrigin {
  void wanted() override { ++wishes; }
  void cancel() override { ++cancels; }
  void later(std::function<void()> work) override { jobs.push_back(std::move(work)); }
  int wishes = 0;
  int cancels = 0;
  std::vector<std::function<void()>> jobs;
};

TEST_CASE("a forgotten callback does not run, and another name changes nothing",
          "[futures][future]") {
  Promise<int> promise;
  int first = 0;
  int second = 0;
  const CallbackId id = promise.future().on_ready([&first] { ++first; });
  (void)promise.future().on_ready([&second] { ++second; });
  promise.future().forget(id);
  promise.future().forget(id);
  promise.set_value(1);
  CHECK(first == 0);
  CHECK(second == 1);
  CHECK(promise.future().on_ready([] {}) == 0);
}

TEST_CASE("every question about a future wants its value, and a handle alone does not (F-5)",
          "[futures][future]") {
  Promise<int> promise;
  const auto origin = std::make_shared<CountingOrigin>();
  const Future<int> future = promise.future(origin);
  const Future<int> copy = future;
  CHECK(origin->wishes == 0);
  (void)copy.ready();
  CHECK(origin->wishes == 1);
  (void)future.wait_until(already_over());
  CHECK(origin->wishes == 2);
  (void)future.on_ready([] {});
  CHECK(origin->wishes == 3);
  future.cancel();
  CHECK(origin->cancels == 1);
  promise.set_value(7);
  CHECK(copy.get() == 7);
}

TEST_CASE("an origin goes with the last handle, and not with the promise (F-5)",
          "[futures][future]") {
  Promise<int> promise;
  std::weak_ptr<FutureOrigin> origin;
  {
    Future<int> future;
    {
      auto made = std::make_shared<CountingOrigin>();
      origin = made;
      future = promise.future(std::move(made));
    }
    const Future<int> copy = future;
    future = Future<int>();
    CHECK_FALSE(origin.expired());
  }
  CHECK(origin.expired());
}

TEST_CASE("a continuation gets the value, on a thread of the origin's if there is one",
          "[futures][future]") {
  Promise<int> promise;
  const auto origin = std::make_shared<CountingOrigin>();
  const auto doubled = promise.future().then([](int value) { return 2 * value; });
  const auto text = doubled.then([](int value) { return std::to_string(value); });
  const auto nothing = promise.future(origin).then([](int) {});
  promise.set_value(4);
  CHECK(text.get() == "8");
  CHECK_FALSE(nothing.ready());
  REQUIRE(origin->jobs.size() == 1);
  origin->jobs.front()();
  CHECK(nothing.ready());
}

TEST_CASE("a continuation of a failed future does not run, and one that throws fails its own",
          "[futures][future]") {
  Promise<int> failed;
  bool has_run = false;
  const auto after = failed.future().then([&has_run](int) { has_run = true; });
  failed.set_error(Error(Errc::ClusterTimeout, "late"));
  CHECK(failure_of(after) == Errc::ClusterTimeout);
  CHECK_FALSE(has_run);
  Promise<int> good;
  const auto thrown = good.future().then([](int) -> int { throw std::runtime_error("no"); });
  good.set_value(1);
  CHECK(failure_of(thrown) == Errc::WorkerFailed);
}

}  // namespace
}  // namespace stagecraft
