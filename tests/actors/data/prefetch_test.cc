/// Tests reading ahead: order, epochs, failures of the source, and an end before the source's.
#include "stagecraft/actors/data/prefetch.h"

#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <thread>

#include <ATen/ops/full.h>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

/// Gives numbered batches, `batches_` an epoch, and notes who reads it.
class Counted final : public BatchSource {
 public:
  explicit Counted(int batches, int throws_at = -1) : batches_(batches), throws_at_(throws_at) {}

  void begin_epoch() override { in_epoch_ = 0; }
  std::optional<LabeledBatch> next() override {
    const std::scoped_lock lock(mutex_);
    reader_ = std::this_thread::get_id();
    if (read_ == throws_at_) {
      throw std::runtime_error("cannot read");
    }
    if (in_epoch_++ == batches_) {
      return std::nullopt;
    }
    ++read_;
    changed_.notify_all();
    return LabeledBatch{{at::full({1}, read_)}, {}};
  }
  void wait_until_read(int batches) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return read_ >= batches; });
  }
  [[nodiscard]] int read() {
    const std::scoped_lock lock(mutex_);
    return read_;
  }
  [[nodiscard]] std::thread::id reader() {
    const std::scoped_lock lock(mutex_);
    return reader_;
  }

 private:
  const int batches_, throws_at_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::thread::id reader_;
  int read_ = 0, in_epoch_ = 0;
};

int number_of(const std::optional<LabeledBatch>& batch) {
  return batch ? batch->inputs[0].tensor.item<int>() : -1;
}

TEST_CASE("batches come in order, epoch after epoch", "[actors][data]") {
  const int ahead = GENERATE(0, 1, 3);
  Counted source(2);
  Prefetch batches(source, 2, ahead);
  for (const int expected : {1, 2, -1, 3, 4, -1}) {
    CHECK(number_of(batches.next()) == expected);
  }
  CHECK((source.reader() == std::this_thread::get_id()) == (ahead == 0));
}

TEST_CASE("no more is read ahead than asked for", "[actors][data]") {
  Counted source(100);
  Prefetch batches(source, 1, 2);
  CHECK(number_of(batches.next()) == 1);
  source.wait_until_read(3);
  // One more may be in the reader's hands, which waits for its place.
  CHECK(source.read() <= 4);
}

TEST_CASE("PF-1: a failure of the source follows the batches before it", "[actors][data]") {
  const int ahead = GENERATE(0, 2);
  Counted source(5, /*throws_at=*/2);
  Prefetch batches(source, 1, ahead);
  CHECK(number_of(batches.next()) == 1);
  CHECK(number_of(batches.next()) == 2);
  CHECK_THROWS_WITH(batches.next(), "cannot read");
}

TEST_CASE("PF-2: reading ends with its owner, in the middle of an epoch", "[actors][data]") {
  Counted source(1000);
  {
    Prefetch batches(source, 1, 4);
    CHECK(number_of(batches.next()) == 1);
  }
  CHECK(source.read() < 1000);
}

}  // namespace
}  // namespace stagecraft
