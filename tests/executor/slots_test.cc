#include "stagecraft/futures/store.h"

#include <ATen/ops/empty.h>

#include "stagecraft/base/error.h"
#include "stagecraft/tests/futures/waiting.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

at::Tensor floats(std::int64_t count) {
  return at::empty({count}, at::kFloat);
}

TEST_CASE("a slot gives back the tensor that was put into it, not a copy", "[futures][store]") {
  Store store(3);
  const at::Tensor value = floats(4);
  store.put(SlotId{1}, value);
  CHECK(store.holds(SlotId{1}));
  CHECK_FALSE(store.holds(SlotId{0}));
  CHECK(store.get(SlotId{1}).is_same(value));
  CHECK(store.take(SlotId{1}).is_same(value));
  CHECK_FALSE(store.holds(SlotId{1}));
  store.put(SlotId{1}, value);
  CHECK(store.holds(SlotId{1}));
}

TEST_CASE("a store lets go of what is taken, freed or cleared", "[futures][store]") {
  Store store(1);
  at::Tensor value = floats(4);
  store.put(SlotId{0}, value);
  CHECK(value.use_count() == 2);
  SECTION("taken") {
    static_cast<void>(store.take(SlotId{0}));
  }
  SECTION("freed") {
    store.free(SlotId{0});
  }
  SECTION("cleared") {
    store.clear();
  }
  CHECK(value.use_count() == 1);
  CHECK(store.bytes() == 0);
}

TEST_CASE("a store counts bytes held and their peak (ST-2)", "[futures][store]") {
  Store store(3);
  store.put(SlotId{0}, floats(10));
  store.put(SlotId{1}, floats(5));
  CHECK(store.bytes() == 60);
  store.account(100);
  CHECK(store.bytes() == 160);
  store.free(SlotId{0});
  store.account(-100);
  CHECK(store.bytes() == 20);
  CHECK(store.peak() == 160);
  store.clear();
  CHECK(store.bytes() == 0);
  CHECK(store.peak() == 160);
}

TEST_CASE("a plan that misuses a slot is told which slot and why (ST-1)", "[futures][store]") {
  Store store(2);
  const SlotId slot{1};
  const auto message = [](const std::string& text) {
    return MessageMatches(ContainsSubstring(text));
  };
  CHECK_THROWS_MATCHES(store.get(slot), Error, message("get slot 1: nothing was ever put into it"));
  CHECK_THROWS_MATCHES(store.take(slot), Error, message("nothing was ever put"));
  store.put(slot, floats(1));
  CHECK_THROWS_MATCHES(store.put(slot, floats(1)), Error, message("put into slot 1: it is full"));
  static_cast<void>(store.take(slot));
  CHECK_THROWS_MATCHES(store.take(slot), Error, message("take slot 1: its tensor was taken"));
  store.put(slot, floats(1));
  store.free(slot);
  CHECK_THROWS_MATCHES(store.free(slot), Error, message("free slot 1: its tensor was freed"));
  store.put(slot, floats(1));
  store.clear();
  CHECK_THROWS_MATCHES(store.get(slot), Error, message("the store was cleared"));
  CHECK_THROWS_MATCHES(store.put(slot, at::Tensor()), Error, message("undefined"));
  CHECK(store.bytes() == 0);
}

TEST_CASE("a slot the plan does not have is an error in every call", "[futures][store]") {
  Store store(2);
  const SlotId slot = GENERATE(SlotId{2}, SlotId{-1});
  CHECK_FALSE(store.holds(slot));
  CHECK(thrown_by([&] { store.put(slot, floats(1)); }) == Errc::PlanInvalid);
  CHECK(thrown_by([&] { static_cast<void>(store.get(slot)); }) == Errc::PlanInvalid);
  CHECK(thrown_by([&] { static_cast<void>(store.take(slot)); }) == Errc::PlanInvalid);
  CHECK(thrown_by([&] { store.free(slot); }) == Errc::PlanInvalid);
  CHECK(thrown_by([] { const Store impossible(-1); }) == Errc::Internal);
}

}  // namespace
}  // namespace stagecraft
