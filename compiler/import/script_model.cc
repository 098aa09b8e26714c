#include "stagecraft/compiler/import/script_model.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/serialization/import.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/import/script_check.h"
#include "stagecraft/compiler/libtorch/foreign_failure.h"
#include "stagecraft/compiler/libtorch/program_device.h"

namespace stagecraft {
namespace {

/// Unifier makes one tensor again of the handles that loading makes of a tensor with several names.
class Unifier {
 public:
  void unify(const torch::jit::Module& model) {
    for (torch::jit::Module module : model.modules()) {
      unify_attributes(module);
    }
  }

 private:
  void unify_attributes(torch::jit::Module& module) {
    const auto& type = module.type();
    for (std::size_t i = 0; i < type->numAttributes(); ++i) {
      const c10::IValue value = module._ivalue()->getSlot(i);
      if (value.isTensor() && value.toTensor().defined()) {
        module._ivalue()->setSlot(i, one(value.toTensor()));
      } else if (value.isTensorList()) {
        c10::List<at::Tensor> list = value.toTensorList();
        for (std::size_t k = 0; k < list.size(); ++k) {
          list.set(k, one(list.get(k)));
        }
      }
    }
  }

  at::Tensor one(const at::Tensor& tensor) {
    if (!tensor.has_storage() || tensor.numel() == 0) {
      return tensor;
    }
    const auto same = std::ranges::find_if(seen_, [&](const at::Tensor& t) {
      return t.storage().is_alias_of(tensor.storage()) && t.sizes() == tensor.sizes() &&
             t.strides() == tensor.strides() && t.storage_offset() == tensor.storage_offset() &&
             t.scalar_type() == tensor.scalar_type() && t.requires_grad() == tensor.requires_grad();
    });
    if (same != seen_.end()) {
      return *same;
    }
    seen_.push_back(tensor);
    return tensor;
  }

  Tensors seen_;
};

class Script {
 public:
  explicit Script(torch::jit::Module module) : module_(std::move(module)) {
    for (const torch::jit::Module& owner : module_.modules()) {
      for (std::size_t i = 0; i < owner.type()->numAttributes(); ++i) {
        if (owner.type()->is_buffer(i) && owner._ivalue()->getSlot(i).isTensor()) {
          buffers_.push_back({owner, i, owner._ivalue()->getSlot(i).toTensor()});
        }
      }
    }
  }

  Tensors run(const Tensors& inputs) {
    const torch::jit::GraphOptimizerEnabledGuard unoptimized(false);
    std::vector<c10::IValue> arguments(inputs.begin(), inputs.end());
    Tensors outputs;
    collect(module_.forward(std::move(arguments)), outputs);
    put_buffers_back();
    return outputs;
  }

  /// Returns the modes of the module and those below it, as in Workload.
  [[nodiscard]] std::vector<bool> modes() const {
    std::vector<bool> modes;
    for (const torch::jit::Module& module : module_.modules()) {
      modes.push_back(module.is_training());
    }
    return modes;
  }
  void set_modes(const std::vector<bool>& modes) {
    auto next = modes.begin();
    for (torch::jit::Module module : module_.modules()) {
      module.train(*next++);  // this also sets all modules below it, which are set later
    }
  }

 private:
  struct Buffer {
    torch::jit::Module owner;
    std::size_t slot;
    at::Tensor tensor;
  };

  static void collect(const c10::IValue& value, Tensors& tensors) {
    if (value.isTensor()) {
      if (value.toTensor().defined()) {
        tensors.push_back(value.toTensor());
      }
    } else if (value.isTuple()) {
      for (const c10::IValue& element : value.toTupleRef().elements()) {
        collect(element, tensors);
      }
    } else if (value.isList()) {
      for (const c10::IValue& element : value.toListRef()) {
        collect(element, tensors);
      }
    } else if (value.isGenericDict()) {
      for (const auto& entry : value.toGenericDict()) {
        collect(entry.value(), tensors);
      }
    }
  }

  void put_buffers_back() {
    for (const Buffer& buffer : buffers_) {
      const c10::IValue now = buffer.owner._ivalue()->getSlot(buffer.slot);
      if (now.isTensor() && !now.toTensor().is_same(buffer.tensor)) {
        const at::NoGradGuard no_grad;
        at::Tensor to = buffer.tensor;
        to.copy_(now.toTensor());
        buffer.owner._ivalue()->setSlot(buffer.slot, buffer.tensor);
      }
    }
  }

  torch::jit::Module module_;
  std::vector<Buffer> buffers_;
};

void count_operators(const torch::jit::Block& block, std::map<std::string, int>& operators) {
  for (const torch::jit::Node* node : block.nodes()) {
    const std::string name = node->kind().toQualString();
    if (name.starts_with("aten::")) {
      ++operators[name];
    }
    for (const torch::jit::Block* inner : node->blocks()) {
      count_operators(*inner, operators);
    }
  }
}

void describe_inputs(const torch::jit::Method& forward, ModelFile& model) {
  const auto& arguments = forward.function().getSchema().arguments();
  for (std::size_t i = 1; i < arguments.size(); ++i) {  // 0 is the module
    const bool tensor = arguments[i].type()->isSubtypeOf(*c10::TensorType::get());
    if (tensor) {
      model.inputs.push_back({.name = arguments[i].name()});
    } else if (!arguments[i].default_value()) {
      model.unsupported.push_back(
          {{},
           {},
           fmt::format("forward takes \"{}\", {}; it may take tensors, and others with a default",
                       arguments[i].name(),
                       arguments[i].type()->repr_str())});
    }
  }
}

torch::jit::Module load(const std::string& path) {
  try {
    return torch::jit::load(path, at::Device(kProgramDevice));
  } catch (const std::exception& e) {
    throw foreign_failure(
        e, Errc::UsageFile, path + ": LibTorch cannot load this TorchScript file");
  }
}

}  // namespace

ModelFile script_model(const std::string& path) {
  refuse_code_at_load(path);
  torch::jit::Module module = load(path);
  const auto forward = module.find_method("forward");
  if (!forward) {
    throw Error(Errc::UsageFile,
                fmt::format("{}: expected a module with a method forward, found none", path));
  }
  Unifier().unify(module);
  ModelFile model;
  model.path = path;
  model.format = ModelFormat::TorchScript;
  model.mode = module.is_training() ? ModelMode::Training : ModelMode::Evaluation;
  for (const auto& parameter : module.named_parameters()) {
    model.parameters.push_back({parameter.name, parameter.value});
  }
  for (const auto& buffer : module.named_buffers()) {
    model.buffers.push_back({buffer.name, buffer.value});
  }
  describe_inputs(*forward, model);
  std::vector<Unsupported> faults = script_faults(module);
  model.unsupported.insert(model.unsupported.end(), faults.begin(), faults.end());
  const auto graph = forward->graph()->copy();
  torch::jit::Inline(*graph);
  count_operators(*graph->block(), model.operators);
  auto script = std::make_shared<Script>(std::move(module));
  model.workload = {
      .forward = [script](const Tensors& inputs) { return script->run(inputs); },
      .loss = [](const Tensors& outputs, const Tensors& /*labels*/) { return outputs.at(0); },
      .parameters = model.parameters,
      .buffers = model.buffers,
      .modes = script->modes(),
      .set_modes = [script](const std::vector<bool>& modes) { script->set_modes(modes); }};
  return model;
}

}  // namespace stagecraft
