#include "stagecraft/futures/ref.h"

#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "stagecraft/tests/futures/waiting.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

constexpr Ref kRef{Rank{2}, RefId{9U}};

TEST_CASE("the last copy of a handle releases its value, once (R-1)", "[futures][ref]") {
  std::vector<Ref> released;
  {
    RemoteValue value(kRef, [&released](const Ref& ref) { released.push_back(ref); });
    CHECK(value.valid());
    CHECK(value.ref() == kRef);
    {
      const RemoteValue copy = value;
      RemoteValue moved = std::move(value);
      value = moved;
      moved = RemoteValue();
      CHECK(copy.ref() == kRef);
    }
    CHECK(released.empty());
  }
  REQUIRE(released.size() == 1);
  CHECK(released.front() == kRef);
}

TEST_CASE("a handle that names no value releases nothing and refuses to be read",
          "[futures][ref]") {
  const RemoteValue none;
  CHECK_FALSE(none.valid());
  CHECK(thrown_by([&] { static_cast<void>(none.ref()); }) == Errc::Internal);
}

TEST_CASE("copies dropped on many threads release once (R-1)", "[futures][ref]") {
  std::atomic<int> released = 0;
  {
    const RemoteValue value(kRef, [&released](const Ref&) { ++released; });
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([copy = value] {
        for (int i = 0; i < 1000; ++i) {
          const RemoteValue again = copy;  // NOLINT(performance-unnecessary-copy-initialization)
        }
      });
    }
  }
  CHECK(released == 1);
}

TEST_CASE("a reference prints its owner and its number", "[futures][ref]") {
  CHECK(to_string(kRef) == "value 9 of rank 2");
}

}  // namespace
}  // namespace stagecraft
