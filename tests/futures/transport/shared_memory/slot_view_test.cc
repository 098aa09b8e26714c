/// Tests the receiver's side of shared memory: a message cannot make it use what is not a slot.
#include "stagecraft/futures/transport/shared_memory/slot_view.h"

#include <sys/wait.h>

#include <functional>
#include <string>
#include <thread>

#include <ATen/ops/add.h>
#include <ATen/ops/arange.h>

#include "stagecraft/tests/futures/transport/shared_memory/arenas.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using testing::bytes_from;
using testing::kPage;
using testing::TwoSides;

TEST_CASE("a received tensor lies in the slot, aligned, and any thread may drop it",
          "[futures][shared_memory]") {
  TwoSides two;
  at::Tensor got = two.pass(at::arange(24, at::kDouble).view({2, 3, 4}));
  CHECK(got.sizes() == at::IntArrayRef({2, 3, 4}));
  CHECK(got.scalar_type() == at::kDouble);
  CHECK(reinterpret_cast<std::uintptr_t>(got.const_data_ptr()) % 64 == 0);
  got.add_(1);  // its own, to write too
  CHECK(got.equal(at::arange(1, 25, at::kDouble).view({2, 3, 4})));
  at::Tensor part = got.slice(0, 1);
  got.reset();
  CHECK(two.arena->put(bytes_from(0, 8))->slot.number == 1);  // the part holds the slot
  std::thread([&] { part.reset(); }).join();
  CHECK(two.arena->put(bytes_from(0, 8))->slot.number == 0);
}

TEST_CASE("a message that contradicts the memory is refused (VI-1)", "[futures][shared_memory]") {
  TwoSides two;
  const at::Tensor values = bytes_from(0, 2 * kPage);
  const auto lent = two.arena->put(values);
  const auto refused = [&](const std::function<void(SlotRef&)>& change) {
    SlotRef slot = lent->slot;
    change(slot);
    return refusal([&] { (void)two.take(slot, values); }, Errc::TransportRefused);
  };
  CHECK_THAT(refused([](SlotRef&) {}), ContainsSubstring("slot 0 was not sent"));
  two.arena->mark_sent(lent->slot);
  CHECK_THAT(refused([](SlotRef& s) { s.number = 1; }), ContainsSubstring("slot 1 was not sent"));
  CHECK_THAT(refused([](SlotRef& s) { s.number = MemoryFile::kMostSlots; }),
             ContainsSubstring("there is no slot 4096"));
  CHECK_THAT(refused([](SlotRef& s) { s.offset = 0; }), ContainsSubstring("not a slot"));
  CHECK_THAT(refused([](SlotRef& s) { s.offset += 8; }), ContainsSubstring("not a slot"));
  CHECK_THAT(refused([](SlotRef& s) { s.offset = -kPage; }), ContainsSubstring("not a slot"));
  CHECK_THAT(refused([](SlotRef& s) { s.capacity = 4 * testing::kMebi + 1; }),
             ContainsSubstring("not a slot"));
  CHECK_THAT(refused([](SlotRef& s) { s.capacity = std::numeric_limits<std::int64_t>::max(); }),
             ContainsSubstring("not a slot"));
  CHECK_THAT(refused([](SlotRef& s) { s.capacity = 5 * kPage; }),
             ContainsSubstring("a slot of 20480 bytes is too large for a tensor of 8192"));
  CHECK_THAT(refused([](SlotRef& s) { s.capacity = kPage; }),
             ContainsSubstring("a tensor of 8192 bytes does not fit a slot of 4096"));
  const at::Tensor got = two.take(lent->slot, values);
  CHECK_THAT(refused([](SlotRef&) {}), ContainsSubstring("before it was given back"));
}

TEST_CASE("a message that lends what is not lent memory is refused (VI-1)",
          "[futures][shared_memory]") {
  TwoSides two;
  const at::Tensor lent = two.lent.zeros(1000, at::kFloat);
  const SlotRef range = *two.lent.range_of(lent);
  const auto refused = [&](const std::function<void(SlotRef&)>& change) {
    SlotRef changed = range;
    change(changed);
    return refusal([&] { (void)two.take(changed, lent); }, Errc::TransportRefused);
  };
  CHECK_THAT(refused([](SlotRef& r) { r.offset = 0; }), ContainsSubstring("bytes of lent memory"));
  CHECK_THAT(refused([](SlotRef& r) { r.offset = -kPage; }), ContainsSubstring("at byte -4096"));
  CHECK_THAT(refused([](SlotRef& r) { r.offset += 2; }), ContainsSubstring("not a tensor"));
  CHECK_THAT(refused([](SlotRef& r) { r.offset = std::numeric_limits<std::int64_t>::max() - 3; }),
             ContainsSubstring("not a tensor"));
  CHECK_THAT(refused([](SlotRef& r) { r.capacity = 5000; }), ContainsSubstring("of 4000 in"));
  two.view =
      std::make_shared<SlotView>(MemoryFile(testing::copy_of(two.arena->file().descriptor())));
  CHECK_THAT(refused([](SlotRef&) {}), ContainsSubstring("no memory was offered for that"));
}

TEST_CASE("a slot stays where it was", "[futures][shared_memory]") {
  TwoSides two;
  const at::Tensor values = bytes_from(0, kPage);
  (void)two.pass(values);
  const auto again = two.arena->put(values);
  two.arena->mark_sent(again->slot);
  SlotRef moved = again->slot;
  moved.offset += kPage;
  CHECK_THAT(refusal([&] { (void)two.take(moved, values); }, Errc::TransportRefused),
             ContainsSubstring("slot 0 was at byte 147456 before, and is at byte 151552 now"));
}

TEST_CASE("a child of fork() that drops its copies gives no slot back",
          "[futures][shared_memory]") {
  TwoSides two;
  at::Tensor got = two.pass(bytes_from(4, kPage));
  auto lent = two.arena->put(bytes_from(5, kPage));
  const pid_t child = fork();
  if (child == 0) {
    got.reset();
    lent.reset();
    _exit(0);
  }
  int status = 1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(two.arena->put(bytes_from(0, kPage))->slot.number == 2);
  CHECK(got.equal(bytes_from(4, kPage)));
}

}  // namespace
}  // namespace stagecraft
