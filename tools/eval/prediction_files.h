/// PredictionFiles writes the outputs of a prediction: output i of microbatch j of step k is
/// `step<k>_mb<j>_out<i>`, a .npy file in a folder, or a tensor of one .safetensors file.
///
/// A folder gets its files as microbatches come, and a .safetensors file appears at the end;
/// until then its tensors are in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/module/named_tensor.h"

namespace stagecraft::tools {

/// Microbatches is the number of steps of data, and the microbatches of each.
struct Microbatches {
  std::int64_t steps = 0;
  int in_step = 1;

  [[nodiscard]] std::int64_t all() const { return steps * in_step; }
};

class PredictionFiles {
 public:
  /// Makes the folder if there is none. `outputs`: of each microbatch.
  /// Errors: UsageFile for a folder that cannot be made, and for one with data or outputs of other
  ///         microbatches, among which they would be lost.
  PredictionFiles(std::string path, Microbatches microbatches, std::size_t outputs);

  /// Writes the outputs of the next microbatch. Errors: those of write_npy.
  void add(const std::vector<at::Tensor>& outputs);

  /// Ends the writing. Errors: those of write_safetensors.
  void close();

 private:
  const std::string path_;
  const Microbatches microbatches_;
  std::int64_t next_ = 0;             ///< microbatch
  std::vector<NamedTensor> tensors_;  ///< of the one file
};

}  // namespace stagecraft::tools
