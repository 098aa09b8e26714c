/// ModelFile is a model that was read from a file, with everything that its file says about it.
///
/// load_model makes it; `compile` takes it like a module.
/// MF-1: if the caller gives no loss, the first output is the loss of one microbatch, or the output
///       that the file marks as the loss.
/// MF-2: a batch is split in dim 0, so an input that is one number per microbatch (a tensor without
///       dimensions, `known`) is given as one of shape [microbatches].
/// MF-3: a parameter with several names (tied weights) is one tensor under each of them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "stagecraft/compiler/data/model_tensor.h"
#include "stagecraft/compiler/import/archive/unsupported.h"
#include "stagecraft/compiler/module/named_tensor.h"
#include "stagecraft/compiler/module/workload.h"

namespace stagecraft {

enum class ModelFormat : std::uint8_t { Exported, TorchScript };

/// ModelMode is the mode in which the file's operators were written. A file holds one mode.
enum class ModelMode : std::uint8_t {
  Training,
  Evaluation,  ///< dropout is off and batch_norm keeps its statistics, also while training here
  Either,      ///< no operator depends on the mode
};

struct ModelFile {
  std::string path;
  ModelFormat format = ModelFormat::Exported;
  std::string written_by;  ///< "torch 2.11.0"; empty if the file does not say
  ModelMode mode = ModelMode::Either;
  std::vector<ModelTensor> inputs, outputs;
  std::vector<NamedTensor> parameters, buffers;  ///< under each of their names, in the file's order
  std::map<std::string, int> operators;          ///< the number of operators by name,
                                                 ///< "aten::linear"
  std::vector<Unsupported> unsupported;          ///< every part that is known before a run to be
                                                 ///< unsupported
  Workload workload;                             ///< keeps the needed parts of the file alive
};

}  // namespace stagecraft
