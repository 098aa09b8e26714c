/// Tests memory in which tensors are lent: who reads it sees what its owner wrote there.
#include "stagecraft/futures/transport/shared_memory/lent_memory.h"

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include "stagecraft/tests/futures/transport/shared_memory/arenas.h"
#include "stagecraft/tests/futures/transport/zmq/two_ports.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using testing::kMebi;
using testing::kPage;
using testing::TwoSides;

TEST_CASE("lent memory knows where a tensor lies in it, and that another one does not",
          "[futures][shared_memory]") {
  const TwoSides two;
  const at::Tensor whole = two.lent.zeros(4096, at::kFloat);
  const std::optional<SlotRef> range = two.lent.range_of(whole);
  REQUIRE(range);
  CHECK(range->number == kLent);
  CHECK(range->capacity == 4 * 4096);
  const std::optional<SlotRef> part = two.lent.range_of(whole.narrow(0, 100, 50));
  REQUIRE(part);
  CHECK(part->offset == range->offset + 400);
  CHECK(part->capacity == 200);
  CHECK_FALSE(two.lent.range_of(at::ones({4096})));
  CHECK_FALSE(two.lent.range_of(whole.narrow(0, 0, 0)));
  CHECK_FALSE(LentMemory(kMebi).range_of(whole));
}

TEST_CASE("memory that was used before is zeroed", "[futures][shared_memory]") {
  const LentMemory lent(kMebi);
  at::Tensor first = lent.zeros(1000, at::kLong).fill_(5);
  const SlotRef before = *lent.range_of(first);
  first.reset();
  const at::Tensor second = lent.zeros(1000, at::kLong);
  CHECK(lent.range_of(second)->offset == before.offset);
  CHECK(second.equal(at::zeros({1000}, at::kLong)));
}

TEST_CASE("tensors that stay take whole pages and no more, and give them back when they are gone",
          "[futures][shared_memory]") {
  constexpr std::int64_t kBytes = 37 * kPage + 1;
  const LentMemory lent(2 * 38 * kPage);
  at::Tensor first = lent.zeros(kBytes, at::kByte);
  const at::Tensor second = lent.zeros(kBytes, at::kByte);
  CHECK(lent.range_of(second));
  first.reset();
  CHECK_FALSE(lent.range_of(lent.zeros(36 * kPage, at::kByte)));  // smaller than the free one
  const SlotArena::Time now = std::chrono::steady_clock::now();
  lent.trim(now);
  lent.trim(now + SlotArena::kIdle + std::chrono::seconds(1));
  CHECK(lent.range_of(lent.zeros(36 * kPage, at::kByte)));
  CHECK(second.equal(at::zeros({kBytes}, at::kByte)));
}

TEST_CASE("where no memory is left to lend, a tensor lies in usual memory",
          "[futures][shared_memory]") {
  const LentMemory none(0);
  CHECK(none.file() == nullptr);
  CHECK_FALSE(none.range_of(none.zeros(10, at::kFloat)));
  const LentMemory little(4 * kPage);
  const at::Tensor fits = little.zeros(4 * kPage, at::kByte);
  const at::Tensor too_much = little.zeros(kPage, at::kByte);
  CHECK(little.range_of(fits));
  CHECK_FALSE(little.range_of(too_much));
  CHECK(too_much.equal(at::zeros({kPage}, at::kByte)));
}

TEST_CASE("a peer reads a lent tensor where it lies, and gets a copy of any other",
          "[futures][shared_memory]") {
  TwoPorts two("tcp://127.0.0.1:*", {.shared_memory = 64 * kMebi});
  std::int64_t value = 0;
  REQUIRE(eventually([&] {
    two.require_work(++value);
    return two.zero->route_to(Rank{1}) == Route::SharedMemory;
  }));
  const at::Tensor lendable = two.zero->lendable(kMebi, at::kInt);
  const auto arrives = [&] {
    const Future<at::Tensor> arrival = two.one->receive(Rank{0}, kTag);
    REQUIRE(arrival.wait_until(patience()));
    return arrival.get();
  };
  two.zero->lend(Rank{1}, kTag, lendable);
  const at::Tensor read = arrives();
  two.zero->send(Rank{1}, kTag, lendable);
  const at::Tensor copy = arrives();
  lendable.fill_(3);  // the reader has not said that it is done
  CHECK(read.equal(lendable));
  CHECK(copy.equal(at::zeros({kMebi}, at::kInt)));
  two.port->close();
  CHECK(read.equal(lendable));
}

}  // namespace
}  // namespace stagecraft
