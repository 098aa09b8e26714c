/// MeasuredModel is a model of `examples` with a batch, for benchmarks of training.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/module/batch.h"
#include "stagecraft/compiler/program/program.h"
#include "stagecraft/examples/models/llama.h"

namespace stagecraft::bench {

/// Its functions share the module, so only one of them may run at a time.
struct MeasuredModel {
  std::string name;                              ///< includes its size
  Batch inputs, labels;                          ///< of a step
  std::vector<at::Tensor> one_input, one_label;  ///< of its first microbatch
  int microbatches = 1;
  std::function<Program()> compile;
  std::function<at::Tensor()> loss;    ///< of the module itself, for the first microbatch
  std::vector<at::Tensor> parameters;  ///< likewise
};

inline constexpr std::int64_t kLlamaSequences = 4;  ///< of a microbatch
inline constexpr int kMicrobatches = 8;

/// Returns 8 layers, 8 heads and 128 tokens; the feed-forward is 2.7 times as wide as `dim`.
[[nodiscard]] examples::LlamaOptions llama_options(std::int64_t dim, int stages);
[[nodiscard]] MeasuredModel llama(std::int64_t dim, int stages);
/// Returns the same with a mixture of 8 experts in each layer, each as wide as `dim`.
[[nodiscard]] MeasuredModel moe(std::int64_t dim, int stages);
/// Returns the model in the size that `stagecraft train` makes, with 8 images per microbatch.
[[nodiscard]] MeasuredModel vit(int stages);
[[nodiscard]] MeasuredModel unet(int stages);

}  // namespace stagecraft::bench
