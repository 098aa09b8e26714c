/// ModelData is the training data of a model from a file, read from a folder step by step.
///
/// Each kind of folder has its class (microbatch_files.h, shard_folder.h), and open_data() chooses
/// it. A step is a step of the run, counted from 0: an epoch has steps() of them, and the data come
/// again in the next one, in the order that the class says.
/// MD-1: what a step gets depends on the folder, the seed and the step alone, so that a resumed
///       run, and a rank that reads the data itself, get the same numbers.
/// Thread: one at a time uses an object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/module/batch.h"

namespace stagecraft {

/// ArgumentHeader is the type and shape of an argument of a microbatch.
struct ArgumentHeader {
  at::ScalarType dtype = at::kFloat;
  std::vector<std::int64_t> sizes;

  friend bool operator==(const ArgumentHeader&, const ArgumentHeader&) = default;
};

class ModelData {
 public:
  virtual ~ModelData() = default;

  [[nodiscard]] virtual const std::string& folder() const = 0;
  /// Returns the samples of an epoch, of which the request made microbatches; nothing if the folder
  /// has whole microbatches.
  [[nodiscard]] virtual std::optional<std::int64_t> samples() const { return std::nullopt; }
  /// Returns the samples of the folder that are not in the requested part.
  [[nodiscard]] virtual std::int64_t samples_apart() const { return 0; }
  /// Returns the steps of an epoch, at least one.
  [[nodiscard]] virtual std::int64_t steps() const = 0;
  /// Returns the microbatches of a step.
  [[nodiscard]] virtual int microbatches() const = 0;
  /// Returns the header of each argument of a microbatch.
  [[nodiscard]] virtual const std::vector<ArgumentHeader>& arguments() const = 0;

  /// Returns the arguments of one microbatch. Errors: UsageFile for a file that has changed since.
  [[nodiscard]] virtual std::vector<at::Tensor> microbatch(std::int64_t step,
                                                           int microbatch) const = 0;

  /// Returns the file that has the argument, of the first sample, for messages.
  [[nodiscard]] virtual std::string where(std::int64_t step,
                                          int microbatch,
                                          std::size_t argument) const = 0;

  /// Returns all microbatches of `steps` steps from `step` on, concatenated in dim 0; for an
  /// argument without dimensions one number per microbatch. Errors: as microbatch.
  [[nodiscard]] Batch batch(std::int64_t step, std::int64_t steps = 1) const;

  /// Returns the bytes of one step's tensors.
  [[nodiscard]] double bytes_of_step() const;
};

/// Returns "Long [4, 128]".
[[nodiscard]] std::string to_string(const ArgumentHeader& header);

}  // namespace stagecraft
