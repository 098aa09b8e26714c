#include "stagecraft/actors/executor/run/slots.h"

#include <ATen/ops/empty.h>

#include "stagecraft/base/error.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::MessageMatches;

at::Tensor floats(std::int64_t count) {
  return at::empty({count}, at::kFloat);
}

SavedStage saved_of(const at::Tensor& output) {
  SavedStage saved;
  saved.chunks.push_back({.leaves = {}, .outputs = {output}, .loss = {}});
  return saved;
}

auto says(const std::string& text) {
  return MessageMatches(ContainsSubstring(text));
}

TEST_CASE("a slot gives back what was put into it, not a copy", "[executor][slots]") {
  Slots slots(3);
  const at::Tensor value = floats(4);
  slots.put(SlotId{1}, value);
  CHECK(slots.tensor(SlotId{1}).is_same(value));
  slots.put(SlotId{0}, saved_of(value), 100);
  CHECK(slots.saved(SlotId{0}).chunks.front().outputs.front().is_same(value));
  slots.put(SlotId{2}, std::vector{value, at::Tensor()});
  CHECK(slots.parameter_gradients(SlotId{2}).front().is_same(value));
  slots.free(SlotId{0});
  slots.put(SlotId{0}, value);
  CHECK(slots.tensor(SlotId{0}).is_same(value));
}

TEST_CASE("slots let go of what is freed or cleared", "[executor][slots]") {
  Slots slots(2);
  const at::Tensor value = floats(4);
  slots.put(SlotId{0}, value);
  slots.put(SlotId{1}, saved_of(value), 16);
  CHECK(value.use_count() == 3);
  SECTION("freed") {
    slots.free(SlotId{0});
    slots.free(SlotId{1});
  }
  SECTION("cleared") {
    slots.clear();
  }
  CHECK(value.use_count() == 1);
  CHECK(slots.bytes() == 0);
  CHECK(slots.in_flight() == 0);
}

TEST_CASE("ST-2: slots count bytes held, what is kept for a backward, and the peaks of both",
          "[executor][slots]") {
  Slots slots(4);
  slots.put(SlotId{0}, floats(10));
  slots.put(SlotId{1}, floats(5));
  CHECK(slots.bytes() == 60);
  slots.put(SlotId{2}, saved_of(floats(1)), 100);
  CHECK(slots.bytes() == 160);
  slots.put(SlotId{3}, std::vector{floats(1000)});
  CHECK(slots.bytes() == 160);
  slots.free(SlotId{0});
  slots.free(SlotId{2});
  CHECK(slots.bytes() == 20);
  CHECK(slots.peak() == 160);
  CHECK(slots.in_flight() == 0);
  CHECK(slots.peak_in_flight() == 1);
  slots.clear();
  CHECK(slots.bytes() == 0);
  CHECK(slots.peak() == 160);
  slots.begin_step();
  CHECK(slots.peak_in_flight() == 0);
}

TEST_CASE("ST-1: a plan that misuses a slot is told which slot and why", "[executor][slots]") {
  Slots slots(2);
  const SlotId slot{1};
  CHECK_THROWS_MATCHES(slots.tensor(slot), Error, says("get slot 1: nothing was ever put into it"));
  slots.put(slot, floats(1));
  CHECK_THROWS_MATCHES(slots.put(slot, floats(1)), Error, says("put into slot 1: it is full"));
  CHECK_THROWS_MATCHES(slots.saved(slot), Error, says("does not hold what a forward has saved"));
  CHECK_THROWS_MATCHES(
      slots.parameter_gradients(slot), Error, says("does not hold gradients of parameters"));
  slots.free(slot);
  CHECK_THROWS_MATCHES(slots.free(slot), Error, says("free slot 1: it was freed"));
  slots.put(slot, saved_of(floats(1)), 4);
  CHECK_THROWS_MATCHES(slots.tensor(slot), Error, says("does not hold a tensor"));
  slots.clear();
  CHECK_THROWS_MATCHES(slots.saved(slot), Error, says("all were cleared"));
  CHECK_THROWS_MATCHES(slots.put(slot, at::Tensor()), Error, says("undefined"));
  CHECK(slots.bytes() == 0);
}

TEST_CASE("a slot the plan does not have is an error in every call", "[executor][slots]") {
  Slots slots(2);
  const SlotId slot = GENERATE(SlotId{2}, SlotId{-1});
  const auto no_such = says("the plan has 2 slots");
  CHECK_THROWS_MATCHES(slots.put(slot, floats(1)), Error, no_such);
  CHECK_THROWS_MATCHES(slots.put(slot, saved_of(floats(1)), 4), Error, no_such);
  CHECK_THROWS_MATCHES(slots.put(slot, std::vector{floats(1)}), Error, no_such);
  CHECK_THROWS_MATCHES(slots.tensor(slot), Error, no_such);
  CHECK_THROWS_MATCHES(slots.saved(slot), Error, no_such);
  CHECK_THROWS_MATCHES(slots.parameter_gradients(slot), Error, no_such);
  CHECK_THROWS_MATCHES(slots.free(slot), Error, no_such);
  CHECK_THROWS_AS(Slots(-1), Error);
}

}  // namespace
}  // namespace stagecraft
