/// Uses the distribution's spdlog and fmt beside the runtime. LibTorch's headers contain another
/// fmt.
#include <ATen/core/Tensor.h>
#include <ATen/ops/ones.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>
#include <stagecraft/stagecraft.h>

int main() {
  const auto cluster = stagecraft::Cluster::local(2);
  const at::Tensor ones = at::ones({2, 3});
  spdlog::info("{} ranks, a tensor of shape {}", cluster.ranks(), fmt::join(ones.sizes(), "x"));
  return ones.numel() == 6 ? 0 : 1;
}
