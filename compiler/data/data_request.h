/// DataRequest says how a model takes the samples of a folder of shards (shard_folder.h).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "stagecraft/compiler/data/model_tensor.h"

namespace stagecraft {

/// DataPart is a part of the samples: those that steps train on, or the last ones, which are held
/// out for evaluations.
enum class DataPart : std::uint8_t { Training, HeldOut };

struct DataRequest {
  /// The model's inputs: their names find the tensors of .safetensors files, and their sizes the
  /// window of tokens and the size of a microbatch.
  std::vector<ModelTensor> inputs;
  int microbatches = 1;                         ///< of a step
  std::optional<std::int64_t> microbatch_size;  ///< samples; none: as the inputs state it
  double held_out = 0.0;                        ///< fraction of the samples, from 0 to below 1
  DataPart part = DataPart::Training;
  /// The order of samples to train on; none: that of the files, in every epoch. Those that are held
  /// out always have that of the files.
  std::optional<std::uint64_t> seed = 0;
};

/// Returns the samples of a microbatch that the model's file states, the size of its inputs in dim
/// 0; nothing if it leaves them open.
[[nodiscard]] std::optional<std::int64_t> stated_microbatch_size(
    const std::vector<ModelTensor>& inputs);

}  // namespace stagecraft
