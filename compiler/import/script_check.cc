#include "stagecraft/compiler/import/script_check.h"

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <ATen/core/dispatch/Dispatcher.h>
#include <caffe2/serialize/file_adapter.h>
#include <caffe2/serialize/inline_container.h>
#include <fmt/format.h>
#include <torch/csrc/jit/api/compilation_unit.h>
#include <torch/csrc/jit/api/function_impl.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/ir.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/libtorch/allowed_operators.h"
#include "stagecraft/compiler/libtorch/foreign_failure.h"

namespace stagecraft {
namespace {

constexpr std::string_view kForeignClasses = "__torch__.torch.classes.";

class FaultFinder {
 public:
  void look_at(const torch::jit::Block& block) {
    for (const torch::jit::Value* input : block.inputs()) {
      look_at_type(input->type());
    }
    for (const torch::jit::Node* node : block.nodes()) {
      look_at(*node);
    }
  }

  [[nodiscard]] std::vector<Unsupported> take() {
    std::vector<Unsupported> all;
    for (const std::string& fault : faults_) {
      all.push_back({{}, {}, fault});
    }
    return all;
  }

 private:
  void look_at(const torch::jit::Node& node) {
    if (const auto fault = fault_of(node)) {
      faults_.insert(*fault);
    }
    for (const torch::jit::Value* output : node.outputs()) {
      look_at_type(output->type());
    }
    for (const torch::jit::Block* inner : node.blocks()) {
      look_at(*inner);
    }
  }

  static std::optional<std::string> fault_of(const torch::jit::Node& node) {
    const std::string name = node.kind().toQualString();
    if (const auto* schema = node.maybeSchema(); schema != nullptr) {
      const c10::OperatorName& full = schema->operator_name();
      if (c10::Dispatcher::singleton().findSchema(full)) {
        return operator_refusal(full, ProgramOrigin::ModelFile);
      }
    }
    if (is_allowed_in_script(name)) {
      return std::nullopt;
    }
    return fmt::format("TorchScript's {} is not one that a file may call", name);
  }

  /// C++ objects are refused, because no list says what their methods do.
  void look_at_type(const c10::TypePtr& type) {
    if (const auto object = type->cast<c10::ClassType>();
        object && object->name() && object->name()->qualifiedName().starts_with(kForeignClasses)) {
      faults_.insert(
          fmt::format("it has an object of the C++ class {}; a file may not have such objects",
                      object->name()->qualifiedName()));
    }
  }

  std::set<std::string> faults_;
};

}  // namespace

void refuse_code_at_load(const std::string& path) {
  try {
    caffe2::serialize::PyTorchStreamReader reader(
        std::make_shared<caffe2::serialize::FileAdapter>(path));
    for (const std::string& record : reader.getAllRecords()) {
      if (!record.starts_with("code/") || !record.ends_with(".py")) {
        continue;
      }
      const auto [bytes, size] = reader.getRecord(record);
      if (std::string_view(static_cast<const char*>(bytes.get()), size).find("__setstate__") !=
          std::string_view::npos) {
        throw Error(Errc::UsageFile,
                    fmt::format("{}: {} defines __setstate__, which LibTorch would call while it "
                                "loads the file; keep the state in parameters and buffers",
                                path,
                                record));
      }
    }
  } catch (const Error&) {
    throw;
  } catch (const std::exception& e) {
    throw foreign_failure(e, Errc::UsageFile, path + ": its code cannot be read");
  }
}

std::vector<Unsupported> script_faults(const torch::jit::Module& module) {
  FaultFinder finder;
  for (torch::jit::Function* function : module._ivalue()->compilation_unit()->get_functions()) {
    if (auto* const graph = torch::jit::tryToGraphFunction(*function)) {
      finder.look_at(*graph->graph()->block());
    }
  }
  return finder.take();
}

}  // namespace stagecraft
