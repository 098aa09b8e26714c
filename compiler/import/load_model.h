/// load_model reads a model from a file. `compile` takes the result like a module.
///
///   auto model   = sc::load_model("bert.pt2");
///   auto program = sc::compile(model, {.inputs = {tokens, targets}, .microbatches = 8});
///
/// The file is one of `torch.export.save` (`.pt2`) or of `torch.jit.save` (`.pt`); its content
/// decides which one it is. From there on the model is treated like a C++ module: it runs once
/// under capture, so nothing after `compile` knows where it came from.
///
/// A `.pt2` is data: a hostile one is refused. A `.pt` is a program that LibTorch loads and runs:
/// read only those that you trust.
#pragma once

#include <string>
#include <string_view>

#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/import/model_file.h"
#include "stagecraft/compiler/program/program.h"

namespace stagecraft {

/// Reads the file.
/// Errors: UsageFile for a file that does not exist, is of another kind, damaged or of another
/// version; the message has the expected and the found value. Unsupported parts of a valid file are
/// not an error here.
[[nodiscard]] ModelFile load_model(const std::string& path);

/// Does the same for an archive of torch.export in memory; `name` replaces its path.
[[nodiscard]] ModelFile read_exported_model(std::string_view bytes, const std::string& name);

/// Compiles the model as `compile` compiles a module. `options.loss` may be left out (MF-1).
/// Errors: CompileCapture, with all unsupported parts; the errors of `compile`.
[[nodiscard]] Program compile(const ModelFile& model, const CompileOptions& options);

}  // namespace stagecraft
