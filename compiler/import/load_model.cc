#include "stagecraft/compiler/import/load_model.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/import/archive/archive.h"
#include "stagecraft/compiler/import/exported_model.h"
#include "stagecraft/compiler/import/model_text.h"
#include "stagecraft/compiler/import/script_model.h"

namespace stagecraft {

ModelFile load_model(const std::string& path) {
  Archive archive(path);
  if (is_exported_model(archive)) {
    return exported_model(archive);
  }
  if (archive.has("constants.pkl")) {
    return script_model(path);
  }
  if (archive.has("data.pkl")) {
    archive.refuse(
        "expected a model, found tensors alone (torch.save of a state_dict, or a pickled module, "
        "which only its Python code can read); save it with torch.export.save or torch.jit.save");
  }
  archive.refuse(
      "expected a model of torch.export.save (.pt2) or torch.jit.save (.pt), found a ZIP archive "
      "of another kind");
}

ModelFile read_exported_model(std::string_view bytes, const std::string& name) {
  Archive archive(bytes, name);
  return exported_model(archive);
}

/// Keeps MF-2.
static Tensors with_numbers(const std::vector<ModelTensor>& expected, const Tensors& given) {
  Tensors result = given;
  for (std::size_t i = 0; i < std::min(expected.size(), given.size()); ++i) {
    if (expected[i].known && expected[i].sizes.empty() && given[i].dim() == 1 &&
        given[i].numel() == 1) {
      result[i] = given[i].view(at::IntArrayRef());
    }
  }
  return result;
}

Program compile(const ModelFile& model, const CompileOptions& options) {
  refuse_unsupported(model.path, model.unsupported);
  if (options.inputs.size() != model.inputs.size()) {
    throw Error(Errc::UsageArgument,
                fmt::format("{} takes {} inputs ({}), CompileOptions::inputs has {}",
                            model.path,
                            model.inputs.size(),
                            names_of(model.inputs),
                            options.inputs.size()));
  }
  Workload workload = model.workload;
  workload.modes_in_operators = true;
  workload.forward = [expected = model.inputs, forward = model.workload.forward](
                         const Tensors& given) { return forward(with_numbers(expected, given)); };
  if (options.loss.call()) {
    workload.loss = options.loss.call();
  }
  ModuleSource source;
  const bool may_differ = std::ranges::any_of(model.inputs, [](const ModelTensor& input) {
    return !input.known || std::ranges::find(input.sizes, -1) != input.sizes.end();
  });
  if (model.format == ModelFormat::Exported && !may_differ) {
    source.one_shape = fmt::format(
        "{} was exported for that shape alone: pad the batch, or export the model for this one",
        model.path);
  }
  source.workload = [workload] { return workload; };
  return internal::compile_workload(workload, options, std::move(source));
}

}  // namespace stagecraft
