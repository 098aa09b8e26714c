#include "stagecraft/futures/results.h"

#include <atomic>
#include <thread>

#include "stagecraft/tests/futures/waiting.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

TEST_CASE("a result is held until it is taken or released, and the bytes go back to zero",
          "[futures][results]") {
  Results results;
  const at::Tensor loss = number(3);
  results.hold(RefId{1U}, loss);
  results.hold(RefId{2U}, number(4));
  CHECK(results.bytes() == 16);
  CHECK(results.take(RefId{1U}).is_same(loss));
  CHECK(results.release(RefId{2U}));
  CHECK(results.bytes() == 0);
  CHECK(loss.use_count() == 1);
}

TEST_CASE("clear drops all results", "[futures][results]") {
  Results results;
  const at::Tensor loss = number(3);
  results.hold(RefId{1U}, loss);
  results.clear();
  CHECK(results.bytes() == 0);
  CHECK(loss.use_count() == 1);
  CHECK(thrown_by([&] { static_cast<void>(results.take(RefId{1U})); }) == Errc::WorkerLost);
}

TEST_CASE("a result that is not there cannot be taken, releasing it is no error",
          "[futures][results]") {
  Results results;
  CHECK(thrown_by([&] { static_cast<void>(results.take(RefId{1U})); }) == Errc::WorkerLost);
  CHECK_FALSE(results.release(RefId{1U}));
  results.hold(RefId{1U}, number(3));
  static_cast<void>(results.take(RefId{1U}));
  CHECK(thrown_by([&] { static_cast<void>(results.take(RefId{1U})); }) == Errc::WorkerLost);
  CHECK_FALSE(results.release(RefId{1U}));
}

TEST_CASE("a name is given to one value and a value is a tensor", "[futures][results]") {
  Results results;
  results.hold(RefId{1U}, number(3));
  CHECK(thrown_by([&] { results.hold(RefId{1U}, number(4)); }) == Errc::Internal);
  CHECK(thrown_by([&] { results.hold(RefId{2U}, at::Tensor()); }) == Errc::Internal);
  CHECK(results.bytes() == 8);
  CHECK(number_in(results.take(RefId{1U})) == 3);
}

TEST_CASE("one thread holds results while another takes and releases them", "[futures][results]") {
  constexpr std::uint64_t kCount = 2000;
  Results results;
  std::atomic<std::uint64_t> held = 0;
  std::jthread plan_thread([&] {
    for (std::uint64_t id = 0; id < kCount; ++id) {
      results.hold(RefId{id}, number(static_cast<std::int64_t>(id)));
      held = id + 1;
    }
  });
  std::uint64_t right = 0;
  for (std::uint64_t id = 0; id < kCount; ++id) {
    REQUIRE(eventually([&] { return held > id; }));
    if (id % 2 == 0) {
      right += number_in(results.take(RefId{id})) == static_cast<std::int64_t>(id) ? 1U : 0U;
    } else {
      right += results.release(RefId{id}) ? 1U : 0U;
    }
  }
  CHECK(right == kCount);
  CHECK(results.bytes() == 0);
}

}  // namespace
}  // namespace stagecraft
