/// MicrobatchFiles is a folder of `step<k>_mb<j>_arg<i>.npy`, the inputs of a training of a model
/// from a file: argument i of microbatch j of step k, all counted from 0.
///
/// It reads the headers of the files once, and a step's numbers when they are requested. Other
/// files may be in the folder too.
/// DF-1: every step has the same number of microbatches, each of the same number of arguments, and
///       an argument has one shape and type throughout.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/module/batch.h"
#include "stagecraft/compiler/tensor_files/npy.h"

namespace stagecraft {

class MicrobatchFiles {
 public:
  /// Errors: UsageFile for a folder that does not exist or has none of these files, and for the
  ///         first file that is missing or breaks DF-1; those of read_npy_header.
  explicit MicrobatchFiles(std::string folder);

  [[nodiscard]] const std::string& folder() const { return folder_; }
  [[nodiscard]] std::int64_t steps() const { return steps_; }
  [[nodiscard]] int microbatches() const { return microbatches_; }
  /// Returns the header of each argument of a microbatch.
  [[nodiscard]] const std::vector<NpyHeader>& arguments() const { return arguments_; }
  /// Returns the bytes of one step's tensors.
  [[nodiscard]] double bytes_of_step() const;

  /// Returns the arguments of one microbatch. Errors: UsageFile for a file that has changed since.
  [[nodiscard]] std::vector<at::Tensor> microbatch(std::int64_t step, int microbatch) const;

  /// Returns all microbatches of a step, concatenated in dim 0; for an argument without dimensions
  /// one number per microbatch. Errors: as microbatch.
  [[nodiscard]] Batch batch(std::int64_t step) const;

  /// Returns the path of the file, for messages.
  [[nodiscard]] std::string file(std::int64_t step, int microbatch, std::size_t argument) const;

 private:
  std::string folder_;
  std::int64_t steps_ = 0;
  int microbatches_ = 0;
  std::vector<NpyHeader> arguments_;
};

}  // namespace stagecraft
