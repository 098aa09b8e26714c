/// Tests the sender's side of shared memory: how slots are found, given back and trimmed.
#include "stagecraft/futures/transport/shared_memory/slot_arena.h"

#include <atomic>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

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
  auto first = two.arena->put(bytes_from(0, 3 * kPage));
  REQUIRE(first);
  CHECK_FALSE(two.arena->put(bytes_from(0, 2 * kPage)));
  CHECK(two.arena->put(bytes_from(0, kPage)));
  first.reset();
  CHECK(two.arena->put(bytes_from(0, 2 * kPage)));

  auto sent = two.arena->put(bytes_from(0, 2 * kPage));
  REQUIRE(sent);
  two.arena->mark_sent(sent->slot);
  const SlotRef slot = sent->slot;
  sent.reset();  // the receiver has it
  CHECK_FALSE(two.arena->put(bytes_from(0, 2 * kPage)));
  CHECK(two.take(slot, bytes_from(0, 2 * kPage)).equal(bytes_from(0, 2 * kPage)));
}

TEST_CASE("a tensor that goes late does not give back a slot that has another use (SX-3)",
          "[futures][shared_memory]") {
  TwoSides two;
  auto first = two.arena->put(bytes_from(1, kPage));
  REQUIRE(first);
  two.arena->mark_sent(first->slot);
  two.take(first->slot, first->tensor).reset();  // the receiver is faster than this thread
  const auto second = two.arena->put(bytes_from(2, kPage));
  REQUIRE(second);
  CHECK(second->slot.number == first->slot.number);
  first.reset();
  const auto third = two.arena->put(bytes_from(3, kPage));
  REQUIRE(third);
  CHECK(third->slot.number != second->slot.number);
  CHECK(second->tensor.equal(bytes_from(2, kPage)));
}

TEST_CASE("tensors of growing sizes share slots", "[futures][shared_memory]") {
  TwoSides two(16 * testing::kMebi);
  for (std::int64_t pages = 64; pages < 128; ++pages) {
    CHECK(two.pass(bytes_from(pages, pages * kPage)).defined());
  }
  CHECK(two.arena->slots() == 5);  // of 64, 80, 96, 112 and 128 pages
}

TEST_CASE("many threads may use an arena at once, and trim it", "[futures][shared_memory]") {
  constexpr int kThreads = 4, kRounds = 300;
  TwoSides two(16 * testing::kMebi);
  std::mutex one_receiver;  // a port has one thread that takes
  std::atomic<int> wrong = 0;
  std::atomic<bool> done = false;
  std::thread trimming([&] {
    SlotArena::Time now = std::chrono::steady_clock::now();
    while (!done) {
      two.arena->trim(now += 2 * SlotArena::kIdle);
    }
  });
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      for (int i = 0; i < kRounds; ++i) {
        const at::Tensor values =
            bytes_from(t * kRounds + i, kPage + static_cast<std::int64_t>(random() % (4 * kPage)));
        auto here = two.arena->put(values);
        if (!here || random() % 5 == 0) {
          continue;  // dropped before it is sent
        }
        two.arena->mark_sent(here->slot);
        at::Tensor there;
        {
          const std::scoped_lock lock(one_receiver);
          there = two.take(here->slot, values);
        }
        wrong += there.equal(values) ? 0 : 1;
        (random() % 2 == 0 ? there : here->tensor).reset();
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  done = true;
  trimming.join();
  CHECK(wrong == 0);
  CHECK(two.arena->slots() <= 4 * kThreads);
}

TEST_CASE("memory of idle slots goes back to the system, and comes again",
          "[futures][shared_memory]") {
  TwoSides two;
  const at::Tensor held = two.pass(bytes_from(1, 2 * kPage));
  (void)two.pass(bytes_from(2, 3 * kPage));
  const SlotArena::Time now = std::chrono::steady_clock::now();
  two.arena->trim(now);
  two.arena->trim(now + SlotArena::kIdle);
  CHECK(two.arena->bytes() == 5 * kPage);
  two.arena->trim(now + SlotArena::kIdle + 1ms);
  CHECK(two.arena->bytes() == 2 * kPage);
  CHECK(held.equal(bytes_from(1, 2 * kPage)));
  CHECK(two.pass(bytes_from(3, 3 * kPage)).equal(bytes_from(3, 3 * kPage)));
  CHECK(two.arena->bytes() == 5 * kPage);
  CHECK(two.arena->slots() == 2);
  two.arena->trim(now + 3 * SlotArena::kIdle);  // it has been used: its time begins again
  CHECK(two.arena->bytes() == 5 * kPage);
}

TEST_CASE("an arena may go while tensors of both sides live", "[futures][shared_memory]") {
  at::Tensor received, lent;
  {
    TwoSides two;
    received = two.pass(bytes_from(5, 2 * kPage));
    lent = two.arena->put(bytes_from(6, kPage))->tensor;
  }
  CHECK(received.equal(bytes_from(5, 2 * kPage)));
  CHECK(lent.equal(bytes_from(6, kPage)));
}

TEST_CASE("as many tensors as slots exist may be on their way", "[futures][shared_memory]") {
  TwoSides two((MemoryFile::kMostSlots + 1) * kPage);
  std::vector<SlotArena::InSlot> lent;
  for (std::uint32_t i = 0; i < MemoryFile::kMostSlots; ++i) {
    lent.push_back(*two.arena->put(bytes_from(i, 8)));
  }
  CHECK_FALSE(two.arena->put(bytes_from(0, 8)));
  lent.erase(lent.begin() + 77);
  CHECK(two.arena->put(bytes_from(0, 8))->slot.number == 77);
}

}  // namespace
}  // namespace stagecraft
