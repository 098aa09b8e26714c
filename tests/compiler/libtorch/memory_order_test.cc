/// Tests the order of dimensions in memory: its value for any tensor, and that copies and borders
/// keep it.
#include "stagecraft/compiler/libtorch/memory_order.h"

#include <algorithm>
#include <numeric>
#include <random>

#include <torch/torch.h>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

/// Returns a tensor of random sizes, often with ones, in a random order, with gaps or without.
torch::Tensor anyhow(std::mt19937& draw) {
  const auto below = [&](int count) {
    return std::uniform_int_distribution<std::int64_t>(0, count - 1)(draw);
  };
  std::vector<std::int64_t> order(static_cast<std::size_t>(1 + below(5)));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::shuffle(order, draw);
  std::vector<std::int64_t> sizes;
  for (std::size_t i = 0; i < order.size(); ++i) {
    sizes.push_back(below(3) == 0 ? 1 : 1 + below(4));
  }
  torch::Tensor tensor = torch::randn(sizes);
  if (below(2) == 0) {
    const std::int64_t dim = below(static_cast<int>(order.size()));
    tensor = tensor.narrow(dim, 0, 1 + below(static_cast<int>(tensor.size(dim))));
  }
  return tensor.permute(order);
}

TEST_CASE("a copy in a tensor's order has the order, and so does a value that crosses a border",
          "[compiler][memory-order]") {
  std::mt19937 draw(7);
  for (int i = 0; i < 2000; ++i) {
    const torch::Tensor tensor = anyhow(draw);
    const MemoryOrder order = memory_order_of(tensor);
    CAPTURE(i, tensor.sizes(), tensor.strides(), order);
    REQUIRE(is_memory_order(order, static_cast<std::size_t>(tensor.dim())));
    const torch::Tensor copy = copied_in_order(tensor, order);
    const torch::Tensor sent = to_memory_order(tensor, order);
    REQUIRE(sent.is_contiguous());
    for (const torch::Tensor& one : {copy, from_memory_order(sent.clone(), order)}) {
      REQUIRE(torch::equal(one, tensor));
      REQUIRE(memory_order_of(one) == order);
    }
    REQUIRE_FALSE(copy.is_alias_of(tensor));
  }
}

TEST_CASE("channels-last memory differs from contiguous memory, even with one channel",
          "[compiler][memory-order]") {
  const auto channels = GENERATE(1, 3);
  const torch::Tensor image = torch::randn({2, channels, 4, 5});
  CHECK(memory_order_of(image).empty());
  const torch::Tensor last = image.clone(torch::MemoryFormat::ChannelsLast);
  CHECK(memory_order_of(last) == MemoryOrder{0, 2, 3, 1});
  const torch::Tensor again = copied_in_order(last, memory_order_of(last));
  CHECK(again.strides() == last.strides());
  const torch::Tensor volume =
      torch::randn({2, channels, 3, 4, 5}).clone(torch::MemoryFormat::ChannelsLast3d);
  CHECK(memory_order_of(volume) == MemoryOrder{0, 2, 3, 4, 1});
}

TEST_CASE("an order names each dimension once", "[compiler][memory-order]") {
  CHECK(is_memory_order({}, 3));
  CHECK(is_memory_order({2, 0, 1}, 3));
  CHECK_FALSE(is_memory_order({2, 0, 1}, 4));
  CHECK_FALSE(is_memory_order({0, 0, 1}, 3));
  CHECK_FALSE(is_memory_order({1, 2, 3}, 3));
}

}  // namespace
}  // namespace stagecraft
