/// ShardFolder is a folder of shards of samples, from which each step takes its microbatches.
///
/// The files have one of three forms (docs/models.md, "The data"): `<shard>_arg<i>.npy`,
/// `<shard>.safetensors`, or `<shard>.bin` of tokens. It reads headers once, and of the numbers
/// only the rows of the requested microbatch. Other files may be in the folder too.
/// FH-1: an epoch of training has each sample at most once: all of them but the last ones of its
///       order, which do not fill a step. Each epoch has an order of its own (epoch_order.h).
/// FH-2: no sample is both in the training part and held out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stagecraft/compiler/data/data_request.h"
#include "stagecraft/compiler/data/epoch_order.h"
#include "stagecraft/compiler/data/model_data.h"
#include "stagecraft/compiler/data/shards/shard_rows.h"

namespace stagecraft {

class ShardFolder final : public ModelData {
 public:
  /// Errors: UsageFile for a folder that does not exist, has no shards or those of several forms,
  ///         for tokens of a model without a window, and for fewer samples than a step has; those
  ///         of npy_shards, safetensors_shards, token_shards and ShardRows; UsageArgument for a
  ///         number below 1, a fraction outside its range, and a size of microbatches that nothing
  ///         gives.
  ShardFolder(std::string folder, const DataRequest& request);

  [[nodiscard]] const std::string& folder() const override { return folder_; }
  [[nodiscard]] std::optional<std::int64_t> samples() const override { return count_; }
  [[nodiscard]] std::int64_t samples_apart() const override { return rows_.rows() - count_; }
  [[nodiscard]] std::int64_t steps() const override { return count_ / of_step(); }
  [[nodiscard]] int microbatches() const override { return microbatches_; }
  [[nodiscard]] const std::vector<ArgumentHeader>& arguments() const override { return arguments_; }
  [[nodiscard]] std::vector<at::Tensor> microbatch(std::int64_t step,
                                                   int microbatch) const override;
  [[nodiscard]] std::string where(std::int64_t step,
                                  int microbatch,
                                  std::size_t argument) const override;

 private:
  [[nodiscard]] std::int64_t of_step() const { return microbatches_ * microbatch_size_; }
  /// Returns the row of sample `i` of a microbatch.
  [[nodiscard]] std::int64_t row(std::int64_t step, int microbatch, std::int64_t i) const;
  void choose_part(const DataRequest& request);

  std::string folder_;
  mutable ShardRows rows_;
  int microbatches_ = 1;
  std::int64_t microbatch_size_ = 1;
  std::int64_t first_ = 0;  ///< row of this part
  std::int64_t count_ = 0;  ///< rows of this part
  std::vector<ArgumentHeader> arguments_;
  mutable std::optional<EpochOrder> order_;  ///< none: that of the files
};

}  // namespace stagecraft
