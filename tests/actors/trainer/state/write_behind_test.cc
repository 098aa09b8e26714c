/// Tests the hand-over of tensors to a thread: order, bound, failures, and an end before the last.
#include "stagecraft/actors/trainer/state/write_behind.h"

#include <algorithm>
#include <atomic>
#include <future>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft {
namespace {

constexpr std::size_t kNumber = sizeof(std::int64_t);  // bytes of number()

/// Notes the numbers that it gets. The first write waits for open().
class Gated {
 public:
  void write(const at::Tensor& tensor) {
    written_.push_back(number_in(tensor));
    if (!std::exchange(entered_, true)) {
      inside_.set_value();
      gate_.get_future().wait();
    }
    if (written_.back() == throws_at) {
      throw std::runtime_error("disk full");
    }
  }
  void open() { gate_.set_value(); }
  void wait_inside() { inside_.get_future().wait(); }
  [[nodiscard]] const std::vector<std::int64_t>& written() const { return written_; }

  std::optional<std::int64_t> throws_at;

 private:
  std::vector<std::int64_t> written_;
  bool entered_ = false;
  std::promise<void> gate_, inside_;
};

TEST_CASE("tensors are written in order, on another thread", "[actors][checkpoint]") {
  std::vector<std::int64_t> written;
  std::thread::id writer;
  WriteBehind behind(100, 3 * kNumber, [&](const at::Tensor& tensor) {
    written.push_back(number_in(tensor));
    writer = std::this_thread::get_id();
  });
  for (std::int64_t i = 0; i < 100; ++i) {
    behind.add(number(i));
  }
  behind.wait();
  behind.wait();  // nothing is left to wait for
  REQUIRE(written.size() == 100);
  CHECK(std::ranges::is_sorted(written));
  CHECK(writer != std::this_thread::get_id());
  WriteBehind none(0, 1, [](const at::Tensor&) {});
  none.wait();
}

TEST_CASE("BH-1: who adds more than may be held waits until a tensor is written",
          "[actors][checkpoint]") {
  Gated disk;
  WriteBehind behind(5, 2 * kNumber, [&](const at::Tensor& tensor) { disk.write(tensor); });
  std::atomic<int> added{0};
  auto adding = std::async(std::launch::async, [&] {
    for (std::int64_t i = 0; i < 4; ++i) {
      behind.add(number(i));
      ++added;
    }
    behind.add(at::full({10}, 4, at::kLong));  // larger than all that may be held
  });
  disk.wait_inside();  // the one that is being written counts
  REQUIRE(eventually([&] { return added == 2; }));
  CHECK(adding.wait_for(std::chrono::seconds(0)) == std::future_status::timeout);
  CHECK(added == 2);
  disk.open();
  adding.get();
  behind.wait();
  CHECK((disk.written() == std::vector<std::int64_t>{0, 1, 2, 3, 4}));
}

TEST_CASE("BH-2: after a failure nothing is written, and every call tells it",
          "[actors][checkpoint][faults]") {
  Gated disk;
  disk.throws_at = 0;
  WriteBehind behind(4, 2 * kNumber, [&](const at::Tensor& tensor) { disk.write(tensor); });
  at::Tensor waiting = number(1);
  behind.add(number(0));
  disk.wait_inside();
  behind.add(waiting);
  auto adding = std::async(std::launch::async, [&] { behind.add(number(2)); });  // finds no room
  disk.open();
  CHECK_THROWS_WITH(adding.get(), "disk full");
  CHECK_THROWS_WITH(behind.add(number(3)), "disk full");
  CHECK_THROWS_WITH(behind.wait(), "disk full");
  CHECK((disk.written() == std::vector<std::int64_t>{0}));
  CHECK(waiting.use_count() == 1);
}

TEST_CASE("BH-3: dropping it waits for no tensor that was not added", "[actors][checkpoint]") {
  const int added = GENERATE(0, 1, 2);
  std::vector<std::int64_t> written;
  at::Tensor waiting = number(7);
  {
    WriteBehind behind(
        3, 3 * kNumber, [&](const at::Tensor& tensor) { written.push_back(number_in(tensor)); });
    for (int i = 0; i < added; ++i) {
      behind.add(waiting);
    }
  }
  CHECK(std::ssize(written) <= added);
  CHECK(waiting.use_count() == 1);
}

}  // namespace
}  // namespace stagecraft
