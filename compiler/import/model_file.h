/// ModelFile: a model read from a file, and `compile` for it.
///
///   auto model   = sc::load_model("bert.pt2");
///   auto program = sc::compile(model, {.inputs = {tokens, targets}, .microbatches = 8});
///
/// Reads what `torch.export.save` writes (`.pt2`) and what `torch.jit.save` writes (`.pt`); which
/// of them a file is, its content says. The model then takes the same road as a module in C++: it
/// is run once under capture, so nothing behind `compile` knows where it came from.
///
/// A `.pt2` is data: a hostile one is refused. A `.pt` is a program that LibTorch loads and runs:
/// read only those that you trust.
///
/// MF-1: without a loss of the caller's, the first output is the loss of one microbatch (the one
///       that the file marks as such, where it marks one).
/// MF-2: a batch is split in dim 0, so an input that is one number for each microbatch (a tensor
///       without dimensions, `known`) is given as one of shape [microbatches].
/// MF-3: a parameter with several names (tied weights) is one tensor under each of them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/import/unsupported.h"
#include "stagecraft/compiler/named_tensor.h"
#include "stagecraft/compiler/program.h"
#include "stagecraft/compiler/workload.h"

namespace stagecraft {

enum class ModelFormat : std::uint8_t { Exported, TorchScript };

/// What the operators of the file were told when it was written; it holds one of the two.
enum class ModelMode : std::uint8_t {
  Training,
  Evaluation,  ///< dropout is off, batch_norm keeps its statistics: so they do while training here
  Either,      ///< no operator makes a difference
};

/// A tensor that the model takes or returns.
struct ModelTensor {
  std::string name;
  bool known = false;  ///< whether the file says what it looks like; a TorchScript one does not
  at::ScalarType dtype = at::kFloat;
  std::vector<std::int64_t> sizes;  ///< -1 for one that may differ
};

struct ModelFile {
  std::string path;
  ModelFormat format = ModelFormat::Exported;
  std::string written_by;  ///< "torch 2.11.0"; empty where the file does not say
  ModelMode mode = ModelMode::Either;
  std::vector<ModelTensor> inputs, outputs;
  std::vector<NamedTensor> parameters, buffers;  ///< under each of their names, in the file's order
  std::map<std::string, int> operators;          ///< "aten::linear", and how many of them
  std::vector<Unsupported> unsupported;  ///< as far as can be told before it is run; all of it
  Workload workload;                     ///< keeps what it needs of the file alive
};

/// Errors: UsageFile for a file that is not there, is of another kind, damaged or of another
///         version: what was expected, and what was found. What is merely not supported is no
///         error here.
[[nodiscard]] ModelFile load_model(const std::string& path);

/// Likewise of an archive of torch.export in memory; `name` stands for its path.
[[nodiscard]] ModelFile read_exported_model(std::string_view bytes, const std::string& name);

/// Compiles the model as `compile` does a module. `options.loss` may be left out (MF-1).
/// Errors: CompileCapture, with everything that is not supported; those of `compile`.
[[nodiscard]] Program compile(const ModelFile& model, const CompileOptions& options);

}  // namespace stagecraft
