#include "stagecraft/compiler/graph/custom_function.h"

#include <algorithm>
#include <mutex>
#include <string_view>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <c10/util/Type.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/csrc/dynamo/compiled_autograd.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/graph/whole_backward.h"

namespace stagecraft {
namespace {

namespace autograd = torch::autograd;
namespace compiled = torch::dynamo::autograd;

constexpr std::string_view kNodePrefix = "torch::autograd::CppNode<";

/// Returns the function's own name: the name of its backward node without the prefix.
std::string short_name(std::string_view node_name) {
  node_name.remove_prefix(kNodePrefix.size());
  return std::string(node_name.substr(0, node_name.rfind('>')));
}

/// HandedOver is the part of a node that LibTorch hands to a compiler of backwards.
struct HandedOver {
  compiled::functional_apply_t call;
  std::vector<c10::IValue> arguments;
};

/// Receiver takes it in the place of that compiler.
class Receiver final : public compiled::PyCompilerInterface {
 public:
  explicit Receiver(HandedOver& out) : out_(&out) {}

  std::string bind_function(PyObject*,
                            const std::string& name,
                            compiled::functional_apply_t call,
                            std::vector<at::TypePtr>,
                            bool,
                            bool) const override {
    out_->call = std::move(call);
    return name;
  }
  autograd::variable_list call_function(PyObject*,
                                        const char*,
                                        const std::string&,
                                        const autograd::variable_list&,
                                        const compiled::ivalue_list& arguments,
                                        const c10::IValue&) const override {
    out_->arguments = arguments;
    return {};
  }

 private:
  HandedOver* out_;
};

/// Returns what the node hands over. Everything that LibTorch's tracer would replace by a proxy
/// keeps its value.
HandedOver hand_over(const std::shared_ptr<autograd::Node>& node) {
  HandedOver out;
  compiled::AutogradCompilerCall call(compiled::SizeInput::STATIC);
  compiled::NodeCall node_call(0, node);
  compiled::CompiledNodeArgs arguments(call, node_call);
  node->compiled_args(arguments);
  for (const at::Tensor& tensor : std::vector<at::Tensor>(call.tensor_args.inputs)) {
    call.tensor_args.lookup(tensor).proxy_tensor = tensor;
  }
  for (compiled::LiftedIValueArg& number : call.lifted_ivalue_args.args) {
    number.proxy = *number.actual_ptr;
  }
  compiled::TraceState state(std::vector<std::optional<c10::SymInt>>(call.all_size_inputs.size()),
                             0);
  compiled::SwapSavedVariables swap(call, state, nullptr, node_call);
  static std::mutex one_at_a_time;  // the whole process has one compiler
  const std::scoped_lock lock(one_at_a_time);
  const compiled::PyCompilerGuard receiver(std::make_unique<Receiver>(out));
  (void)node->apply_with_saved({}, swap);
  return out;
}

/// Application is one application of the function in a replay. Keeps CF-3.
struct Application : WholeBackward {
  std::shared_ptr<const CustomFunction> function;
  std::vector<autograd::SavedVariable> saved;

  Gradients all_gradients(const Gradients& gradients) override {
    std::vector<at::Tensor> tensors;
    for (const autograd::SavedVariable& variable : saved) {
      tensors.push_back(variable.unpack(getptr()));
    }
    std::vector<bool> joined;
    for (const autograd::Edge& edge : next_edges()) {
      joined.push_back(edge.is_valid());
    }
    return function->backward(gradients, tensors, joined);
  }
  void release_variables() override {
    for (autograd::SavedVariable& variable : saved) {
      variable.reset_data();
    }
  }
  std::string name() const override { return function->name(); }
};

/// A tensor inside a list or dictionary of ctx->saved_data would remain the one of capture's run.
void refuse_hidden_tensors(const CustomFunction& function, const c10::IValue& value) {
  bool inside = false;
  value.visit([&](const c10::IValue& part) {
    inside = inside || (part.isTensor() && !value.isTensor());
    return inside;
  });
  if (inside) {
    throw Error(
        Errc::CompileCapture,
        fmt::format("the {} keeps tensors in a list or dictionary of ctx->saved_data, where a "
                    "replay cannot put its own: save them by ctx->save_for_backward, or each under "
                    "a key of its own",
                    function.name()));
  }
}

bool same_values(const at::Tensor& a, const at::Tensor& b) {
  return a.defined() && b.defined() && a.unsafeGetTensorImpl() == b.unsafeGetTensorImpl();
}

}  // namespace

bool CustomFunction::made(const autograd::Node& node) {
  return node.name().starts_with(kNodePrefix);
}

CustomFunction::Taken CustomFunction::take(const std::shared_ptr<autograd::Node>& node) {
  const auto function = std::make_shared<CustomFunction>();
  function->name_ = "custom function " + short_name(node->name());
  HandedOver given;
  try {
    given = hand_over(node);
  } catch (const c10::Error& e) {
    throw Error(Errc::CompileCapture,
                fmt::format("the {} cannot be kept, because its backward cannot be called without "
                            "the run that was captured (mark_dirty and mark_non_differentiable "
                            "cause this): write it with ordinary operators ({})",
                            function->name_,
                            e.what_without_backtrace()));
  }
  Taken taken;
  // The arguments are the keys of ctx->saved_data, then its values, then the list that
  // save_for_backward made.
  const std::size_t values = given.arguments.at(0).toListRef().size();
  for (std::size_t i = 1; i <= values; ++i) {
    const c10::IValue& value = given.arguments[i];
    refuse_hidden_tensors(*function, value);
    taken.saved.push_back(value.isTensor() ? value.toTensor() : at::Tensor());
    if (value.isTensor()) {
      given.arguments[i] = c10::IValue(at::Tensor());
    }
  }
  function->saved_variables_ = values + 1;
  for (const at::Tensor& tensor : given.arguments.at(function->saved_variables_).toTensorVector()) {
    taken.saved.push_back(tensor);
  }
  given.arguments[function->saved_variables_] = c10::IValue();
  function->call_ = std::move(given.call);
  function->arguments_ = std::move(given.arguments);
  taken.function = function;
  return taken;
}

CustomFunction::Tensors CustomFunction::join(const Tensors& inputs,
                                             const Tensors& saved,
                                             const Tensors& outputs) const {
  const auto differentiable = [](const at::Tensor& t) { return t.defined() && t.requires_grad(); };
  if (!at::GradMode::is_enabled() || std::ranges::none_of(inputs, differentiable)) {
    return outputs;
  }
  const std::shared_ptr<Application> node(new Application, autograd::deleteNode);
  node->function = shared_from_this();
  autograd::edge_list edges;
  for (const at::Tensor& input : inputs) {
    edges.push_back(differentiable(input) ? autograd::impl::gradient_edge(input)
                                          : autograd::Edge());
  }
  node->set_next_edges(std::move(edges));
  Tensors joined;
  for (const at::Tensor& output : outputs) {
    joined.push_back(output.defined() ? output.detach() : at::Tensor());
    if (output.defined()) {
      autograd::create_gradient_edge(joined.back(), node);
    } else {
      node->add_input_metadata(autograd::Node::undefined_input{});
    }
  }
  for (const at::Tensor& tensor : saved) {
    const auto own =
        std::ranges::find_if(outputs, [&](const at::Tensor& o) { return same_values(o, tensor); });
    const bool is_output = own != outputs.end();
    node->saved.emplace_back(
        is_output ? joined[static_cast<std::size_t>(own - outputs.begin())] : tensor, is_output);
  }
  return joined;
}

CustomFunction::Tensors CustomFunction::backward(const Tensors& gradients,
                                                 const Tensors& saved,
                                                 const std::vector<bool>& wanted) const {
  std::vector<c10::IValue> arguments = arguments_;
  std::size_t next = 0;
  for (; next + 1 < saved_variables_; ++next) {
    if (arguments[next + 1].isTensor()) {
      arguments[next + 1] = c10::IValue(saved[next]);
    }
  }
  arguments[saved_variables_] = compiled::IValuePacker<autograd::variable_list>::pack(
      autograd::variable_list(saved.begin() + static_cast<std::ptrdiff_t>(next), saved.end()));
  arguments[saved_variables_ + 3] = compiled::IValuePacker<std::vector<bool>>::pack(wanted);
  const auto defined = std::ranges::find_if(gradients, &at::Tensor::defined);
  if (defined != gradients.end() && !std::ranges::all_of(gradients, &at::Tensor::defined)) {
    using Infos = compiled::IValuePacker<std::vector<autograd::VariableInfo>>;
    std::vector<autograd::VariableInfo> outputs = Infos::unpack(arguments[saved_variables_ + 4]);
    for (autograd::VariableInfo& output : outputs) {
      output.device = defined->device();  // of the zeros for gradients that are undefined
    }
    arguments[saved_variables_ + 4] = Infos::pack(outputs);
  }
  return call_(gradients, arguments);
}

}  // namespace stagecraft
