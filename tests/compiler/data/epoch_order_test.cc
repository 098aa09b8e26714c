#include "stagecraft/compiler/data/epoch_order.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

constexpr std::int64_t kBatches = 20;

std::vector<std::int64_t> epoch_of(EpochOrder& order, std::int64_t epoch) {
  std::vector<std::int64_t> batches;
  for (std::int64_t n = epoch * kBatches; n < (epoch + 1) * kBatches; ++n) {
    batches.push_back(order.of(n));
  }
  return batches;
}

}  // namespace

TEST_CASE("every epoch has each batch once, the first in the order of the data",
          "[compiler][data][epochs]") {
  EpochOrder order(7, kBatches);
  std::vector<std::vector<std::int64_t>> epochs;
  for (int epoch = 0; epoch < 3; ++epoch) {
    std::vector<std::int64_t> batches = epoch_of(order, epoch);
    epochs.push_back(batches);
    std::ranges::sort(batches);
    CHECK(batches == epochs.front());
  }
  CHECK(std::ranges::is_sorted(epochs[0]));
  CHECK(epochs[1] != epochs[0]);
  CHECK(epochs[2] != epochs[0]);
  CHECK(epochs[2] != epochs[1]);
}

TEST_CASE("EO-1: the order follows from the seed and the number, whatever was read before",
          "[compiler][data][epochs]") {
  EpochOrder whole(7, kBatches), resumed(7, kBatches), other(8, kBatches);
  const std::vector<std::int64_t> second = epoch_of(whole, 1);
  const std::vector<std::int64_t> third = epoch_of(whole, 2);
  CHECK(epoch_of(resumed, 2) == third);
  CHECK(epoch_of(resumed, 1) == second);
  CHECK(epoch_of(resumed, 0) != second);
  CHECK(epoch_of(other, 1) != second);
  EpochOrder one(7, 1);
  CHECK(one.of(41) == 0);
}

}  // namespace stagecraft
