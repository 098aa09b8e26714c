#include "stagecraft/actors/remote/wire/payload.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/quantize_per_tensor.h>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft {
namespace {

struct Found {
  std::string name;
  std::vector<at::Tensor> boxes;
  std::optional<float> score;
};

template <class V>
decltype(auto) visit_fields(Found& m, V&& v) {
  return v(m.name, m.boxes, m.score);
}

template <class T>
T travelled(const T& value) {
  return unpack<T>(pack(value));
}

TEST_CASE("values travel: numbers, strings, lists, maps, options", "[remote][payload]") {
  CHECK(travelled(std::int64_t{-5}) == -5);
  CHECK(travelled(std::uint8_t{250}) == 250);
  CHECK(travelled(2.5F) == 2.5F);
  CHECK(travelled(1e300) == 1e300);
  CHECK(travelled(true));
  CHECK(travelled(std::string("a\0b", 3)) == std::string("a\0b", 3));
  CHECK(travelled(std::vector<std::string>{"x", ""}) == std::vector<std::string>{"x", ""});
  CHECK(travelled(std::map<std::string, int>{{"k", 1}}) == std::map<std::string, int>{{"k", 1}});
  CHECK(travelled(std::optional<int>()) == std::nullopt);
  CHECK(travelled(std::monostate()) == std::monostate());
}

TEST_CASE("a struct with a list of its fields travels with its tensors, which are not copied",
          "[remote][payload]") {
  const Found found{
      .name = "cat", .boxes = {at::arange(4), at::Tensor(), at::ones({2, 3})}, .score = {}};
  const Payload payload = pack(found);
  REQUIRE(payload.tensors.size() == 2);
  CHECK(payload.tensors[0].const_data_ptr() == found.boxes[0].const_data_ptr());
  const auto back = unpack<Found>(payload);
  CHECK(back.name == "cat");
  REQUIRE(back.boxes.size() == 3);
  CHECK(at::equal(back.boxes[0], found.boxes[0]));
  CHECK_FALSE(back.boxes[1].defined());
  CHECK(at::equal(back.boxes[2], found.boxes[2]));
  CHECK_FALSE(back.score.has_value());
}

TEST_CASE("a tensor travels without its graph and in order of its elements", "[remote][payload]") {
  const at::Tensor turned = at::ones({2, 3}).t().requires_grad_();
  const auto back = travelled(turned);
  CHECK_FALSE(back.requires_grad());
  CHECK(back.is_contiguous());
  CHECK(back.sizes() == turned.sizes());
}

TEST_CASE("a tensor that no transport carries is refused before anything is sent",
          "[remote][payload]") {
  const at::Tensor quantized = at::quantize_per_tensor(at::ones(4), 0.1, 0, at::kQInt8);
  CHECK(thrown_by([&] { (void)pack(quantized); }) == Errc::UsageArgument);
}

TEST_CASE("a payload of another type, or a broken one, is refused", "[remote][payload]") {
  CHECK(thrown_by([] { (void)unpack<int>(pack(std::string("text"))); }) == Errc::WireFormat);
  CHECK(thrown_by([] { (void)unpack<std::int8_t>(pack(1000)); }) == Errc::WireFormat);
  CHECK(thrown_by([] { (void)unpack<Found>(pack(3)); }) == Errc::WireFormat);
  CHECK(thrown_by([] { (void)unpack<int>(Payload{}); }) == Errc::WireFormat);
  Payload broken = pack(std::vector<at::Tensor>{at::ones(1), at::ones(1)});
  SECTION("a tensor is missing") {
    broken.tensors.pop_back();
  }
  SECTION("a tensor belongs to nothing") {
    broken.tensors.push_back(at::ones(1));
  }
  SECTION("the bytes end early") {
    broken.bytes.pop_back();
  }
  SECTION("a tensor is named twice") {
    broken.bytes.back() = broken.bytes[broken.bytes.size() - 2];
  }
  CHECK(thrown_by([&] { (void)unpack<std::vector<at::Tensor>>(broken); }) == Errc::WireFormat);
}

}  // namespace
}  // namespace stagecraft
