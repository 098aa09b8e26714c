/// MicrobatchFiles: a folder of `step<k>_mb<j>_arg<i>.npy`, the inputs of a training of a model
/// from a file: argument i of microbatch j of step k, all counted from 0.
///
/// Looked through once, by the headers of its files; a step's numbers are read when it is asked
/// for. Other files may lie there, too.
/// DF-1: every step has as many microbatches, each of as many arguments, and an argument has one
///       shape and type throughout.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/batch.h"
#include "stagecraft/compiler/tensor_files/npy.h"

namespace stagecraft {

class MicrobatchFiles {
 public:
  /// Errors: UsageFile for a folder that is not there or has none of these files, for the first
  ///         file that is missing or breaks DF-1, and those of read_npy_header.
  explicit MicrobatchFiles(std::string folder);

  [[nodiscard]] const std::string& folder() const { return folder_; }
  [[nodiscard]] std::int64_t steps() const { return steps_; }
  [[nodiscard]] int microbatches() const { return microbatches_; }
  /// What each argument of a microbatch is.
  [[nodiscard]] const std::vector<NpyHeader>& arguments() const { return arguments_; }
  /// The bytes of one step's tensors.
  [[nodiscard]] double bytes_of_step() const;

  /// The arguments of one microbatch. Errors: UsageFile for a file that changed since.
  [[nodiscard]] std::vector<at::Tensor> microbatch(std::int64_t step, int microbatch) const;

  /// All microbatches of a step, one behind the other in dim 0; of an argument without dimensions
  /// one number for each. Errors: as microbatch.
  [[nodiscard]] Batch batch(std::int64_t step) const;

  /// Where the file stands, for messages.
  [[nodiscard]] std::string file(std::int64_t step, int microbatch, std::size_t argument) const;

 private:
  std::string folder_;
  std::int64_t steps_ = 0;
  int microbatches_ = 0;
  std::vector<NpyHeader> arguments_;
};

}  // namespace stagecraft
