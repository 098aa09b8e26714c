/// ModelFile is a model read from a file. `compile` takes it like a module.
///
///   auto model   = sc::load_model("bert.pt2");
///   auto program = sc::compile(model, {.inputs = {tokens, targets}, .microbatches = 8});
///
/// It comes from a file of `torch.export.save` (`.pt2`) or of `torch.jit.save` (`.pt`); the content
/// of the file decides which one it is. From there on the model is treated like a C++ module: it
/// runs once under capture, so nothing after `compile` knows where it came from.
///
/// A `.pt2` is data: a hostile one is refused. A `.pt` is a program that LibTorch loads and runs:
/// read only those that you trust.
///
/// MF-1: without a loss of the caller's, the first output is the loss of one microbatch, or the
///       output that the file marks as the loss.
/// MF-2: a batch is split in dim 0, so an input that is one number per microbatch (a tensor without
///       dimensions, `known`) is given as one of shape [microbatches].
/// MF-3: a parameter with several names (tied weights) is one tensor under each of them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/import/archive/unsupported.h"
#include "stagecraft/compiler/module/named_tensor.h"
#include "stagecraft/compiler/module/workload.h"
#include "stagecraft/compiler/program/program.h"

namespace stagecraft {

enum class ModelFormat : std::uint8_t { Exported, TorchScript };

/// ModelMode is the mode that the file's operators were set to when it was written. A file holds
/// one mode.
enum class ModelMode : std::uint8_t {
  Training,
  Evaluation,  ///< dropout is off and batch_norm keeps its statistics, also while training here
  Either,      ///< no operator depends on the mode
};

/// ModelTensor is a tensor that the model takes or returns.
struct ModelTensor {
  std::string name;
  bool known = false;  ///< whether the file contains its type and shape; a TorchScript one does not
  at::ScalarType dtype = at::kFloat;
  std::vector<std::int64_t> sizes;  ///< -1 for a size that may differ
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
  Workload workload;                             ///< keeps what it needs of the file alive
};

/// Errors: UsageFile for a file that does not exist, is of another kind, damaged or of another
///         version; the message has the expected and the found value. Unsupported parts of a valid
///         file are not an error here.
[[nodiscard]] ModelFile load_model(const std::string& path);

/// Does the same for an archive of torch.export in memory; `name` replaces its path.
[[nodiscard]] ModelFile read_exported_model(std::string_view bytes, const std::string& name);

/// Compiles the model as `compile` compiles a module. `options.loss` may be left out (MF-1).
/// Errors: CompileCapture, with all unsupported parts; the errors of `compile`.
[[nodiscard]] Program compile(const ModelFile& model, const CompileOptions& options);

}  // namespace stagecraft
