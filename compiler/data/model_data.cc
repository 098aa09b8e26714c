#include "stagecraft/compiler/data/model_data.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/compiler/libtorch/type_text.h"

namespace stagecraft {

Batch ModelData::batch(std::int64_t step, std::int64_t steps) const {
  Batch batch;
  for (const ArgumentHeader& argument : arguments()) {
    std::vector<std::int64_t> sizes = argument.sizes;
    if (sizes.empty()) {
      sizes = {1};
    }
    sizes[0] *= steps * microbatches();
    batch.emplace_back(at::empty(sizes, at::TensorOptions().dtype(argument.dtype)));
  }
  for (std::int64_t m = 0; m < steps * microbatches(); ++m) {
    const std::vector<at::Tensor> parts =
        microbatch(step + m / microbatches(), static_cast<int>(m % microbatches()));
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::int64_t rows = parts[i].dim() == 0 ? 1 : parts[i].size(0);
      batch[i].tensor.narrow(0, m * rows, rows).copy_(parts[i]);
    }
  }
  return batch;
}

double ModelData::bytes_of_step() const {
  double bytes = 0.0;
  for (const ArgumentHeader& argument : arguments()) {
    auto one = static_cast<double>(at::elementSize(argument.dtype));
    for (const std::int64_t size : argument.sizes) {
      one *= static_cast<double>(size);
    }
    bytes += one * microbatches();
  }
  return bytes;
}

std::string to_string(const ArgumentHeader& header) {
  return fmt::format("{} [{}]", type_text(header.dtype), fmt::join(header.sizes, ", "));
}

}  // namespace stagecraft
