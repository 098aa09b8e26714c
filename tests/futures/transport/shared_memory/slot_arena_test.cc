/// Tests the sender's side of shared memory: how slots are found, given back and trimmed.
#include "stagecraft/futures/transport/shared_memory/slot_arena.h"

#include "stagecraft/tests/futures/transport/shared_memory/arenas.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using namespace std::chrono_literals;
using testing::bytes_from;
using testing::kMebi;
using testing::kPage;
using testing::TwoSides;

TEST_CASE("a slot is used again when its tensor is gone, in any order",
          "[futures][shared_memory]") {
  TwoSides two;
  std::vector<at::Tensor> held;
  for (int i = 0; i < 3; ++i) {
    held.push_back(two.pass(bytes_from(i, 3 * kPage)));
  }
  CHECK(two.arena->slots() == 3);
  held[1].reset();
  const void* const data = two.pass(bytes_from(9, 3 * kPage)).const_data_ptr();
  held[1] = two.pass(bytes_from(7, 3 * kPage));
  CHECK(held[1].const_data_ptr() == data);
  CHECK(two.arena->slots() == 3);
  CHECK(two.arena->bytes() == 9 * kPage);
  for (int i : {0, 1, 2}) {
    CHECK(held[static_cast<std::size_t>(i)].equal(bytes_from(i == 1 ? 7 : i, 3 * kPage)));
  }
}

TEST_CASE("a tensor takes the smallest slot that fits, and none of more than twice its size",
          "[futures][shared_memory]") {
  TwoSides two;
  {
    const at::Tensor large = two.pass(bytes_from(0, 8 * kPage));
    const at::Tensor middle = two.pass(bytes_from(0, 3 * kPage));
  }
  CHECK(two.pass(bytes_from(0, 2 * kPage)).defined());  // in the middle one
  CHECK(two.pass(bytes_from(0, 4 * kPage)).defined());  // in the large one
  CHECK(two.arena->slots() == 2);
  CHECK(two.pass(bytes_from(0, kPage)).defined());
  CHECK(two.arena->slots() == 3);
}

TEST_CASE("without a slot nothing is lent, and what was lent and not sent comes back",
          "[futures][shared_memory]") {
  TwoSides two(4 * kPage);
  auto first = two.arena->put(bytes_from(0, 3 * kPage), two.now);
  REQUIRE(first);
  CHECK_FALSE(two.arena->put(bytes_from(0, 2 * kPage), two.now));
  CHECK(two.arena->put(bytes_from(0, kPage), two.now));
  first.reset();
  CHECK(two.arena->put(bytes_from(0, 2 * kPage), two.now));

  auto sent = two.arena->put(bytes_from(0, 2 * kPage), two.now);
  REQUIRE(sent);
  two.arena->mark_sent(sent->slot);
  const SlotRef slot = sent->slot;
  sent.reset();  // the receiver has it
  CHECK_FALSE(two.arena->put(bytes_from(0, 2 * kPage), two.now));
  CHECK(two.take(slot, bytes_from(0, 2 * kPage)).equal(bytes_from(0, 2 * kPage)));
}

TEST_CASE("memory of idle slots goes back to the system, and comes again",
          "[futures][shared_memory]") {
  TwoSides two;
  const at::Tensor held = two.pass(bytes_from(1, 2 * kPage));
  (void)two.pass(bytes_from(2, 3 * kPage));
  two.arena->trim(two.now + SlotArena::kIdle);
  CHECK(two.arena->bytes() == 5 * kPage);
  two.arena->trim(two.now + SlotArena::kIdle + 1ms);
  CHECK(two.arena->bytes() == 2 * kPage);
  CHECK(held.equal(bytes_from(1, 2 * kPage)));
  CHECK(two.pass(bytes_from(3, 3 * kPage)).equal(bytes_from(3, 3 * kPage)));
  CHECK(two.arena->bytes() == 5 * kPage);
  CHECK(two.arena->slots() == 2);
}

TEST_CASE("an arena may go while tensors of both sides live", "[futures][shared_memory]") {
  at::Tensor received, lent;
  {
    TwoSides two;
    received = two.pass(bytes_from(5, 2 * kPage));
    lent = two.arena->put(bytes_from(6, kPage), two.now)->tensor;
  }
  CHECK(received.equal(bytes_from(5, 2 * kPage)));
  CHECK(lent.equal(bytes_from(6, kPage)));
}

TEST_CASE("as many tensors as slots exist may be on their way", "[futures][shared_memory]") {
  TwoSides two((MemoryFile::kMostSlots + 1) * kPage);
  std::vector<SlotArena::Lent> lent;
  for (std::uint32_t i = 0; i < MemoryFile::kMostSlots; ++i) {
    lent.push_back(*two.arena->put(bytes_from(i, 8), two.now));
  }
  CHECK_FALSE(two.arena->put(bytes_from(0, 8), two.now));
  lent.erase(lent.begin() + 77);
  CHECK(two.arena->put(bytes_from(0, 8), two.now)->slot.number == 77);
}

}  // namespace
}  // namespace stagecraft
