/// Tests reading ahead: order, epochs, failures of the source, and an end before the source's.
#include "stagecraft/actors/data/prefetch.h"

#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <thread>

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randperm.h>

#include "stagecraft/compiler/libtorch/random.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

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

/// Draws an order for each epoch, and gives it as the epoch's batch.
class Shuffled final : public BatchSource {
 public:
  void begin_epoch() override { order_ = at::randperm(100); }
  std::optional<LabeledBatch> next() override {
    const at::Tensor order = std::exchange(order_, at::Tensor());
    return order.defined() ? std::optional(LabeledBatch{{order}, {}}) : std::nullopt;
  }

 private:
  at::Tensor order_;
};

TEST_CASE("PF-3: an epoch can be begun again from the state of random numbers before it",
          "[actors][data]") {
  const int ahead = GENERATE(0, 1, 3);
  Shuffled source;
  std::vector<at::Tensor> orders;
  std::vector<std::string> states;
  {
    Prefetch batches(source, 3, ahead);
    for (int epoch = 0; epoch < 3; ++epoch) {
      orders.push_back(batches.next()->inputs[0].tensor);
      states.push_back(*batches.random());
      CHECK_FALSE(batches.next());
      CHECK(*batches.random() == states.back());
    }
  }
  CHECK_FALSE(at::equal(orders[0], orders[1]));
  set_default_random_state(states[1]);
  Prefetch again(source, 2, ahead);
  for (std::size_t epoch = 1; epoch < 3; ++epoch) {
    CHECK(at::equal(again.next()->inputs[0].tensor, orders[epoch]));
    CHECK_FALSE(again.next());
  }
  CHECK(refusal([] { set_default_random_state("no state"); }, Errc::CheckpointFormat)
            .find("LibTorch") != std::string::npos);
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
