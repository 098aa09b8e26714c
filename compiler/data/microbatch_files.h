/// MicrobatchFiles is a folder of `step<k>_mb<j>_arg<i>.npy`, the inputs of a training of a model
/// from a file: argument i of microbatch j of step k, all counted from 0.
///
/// It reads the headers of the files once, and a step's numbers when they are requested. Other
/// files may be in the folder too. The first epoch has the steps in their order, each further one
/// in an order of its own (epoch_order.h).
/// DF-1: every step has the same number of microbatches, each of the same number of arguments, and
///       an argument has one shape and type throughout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "stagecraft/compiler/data/epoch_order.h"
#include "stagecraft/compiler/data/model_data.h"

namespace stagecraft {

class MicrobatchFiles final : public ModelData {
 public:
  /// `seed`: of the order of further epochs.
  /// Errors: UsageFile for a folder that does not exist or has none of these files, and for the
  ///         first file that is missing or breaks DF-1; those of read_npy_header.
  explicit MicrobatchFiles(std::string folder, std::uint64_t seed = 0);

  /// Returns whether the class takes a file of this name for one of its own, or refuses it.
  [[nodiscard]] static bool may_name(const std::string& name);

  [[nodiscard]] const std::string& folder() const override { return folder_; }
  [[nodiscard]] std::int64_t steps() const override { return order_.count(); }
  [[nodiscard]] int microbatches() const override { return microbatches_; }
  [[nodiscard]] const std::vector<ArgumentHeader>& arguments() const override { return arguments_; }
  [[nodiscard]] std::vector<at::Tensor> microbatch(std::int64_t step,
                                                   int microbatch) const override;
  [[nodiscard]] std::string where(std::int64_t step,
                                  int microbatch,
                                  std::size_t argument) const override;

 private:
  std::string folder_;
  int microbatches_ = 0;
  std::vector<ArgumentHeader> arguments_;
  mutable EpochOrder order_;
};

}  // namespace stagecraft
