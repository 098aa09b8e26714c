#include "stagecraft/compiler/capture/recorder.h"

#include <utility>

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include "stagecraft/base/check.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/capture/boxed_call.h"
#include "stagecraft/compiler/capture/operand_of.h"
#include "stagecraft/compiler/capture/operator_traits.h"
#include "stagecraft/compiler/capture/refusals.h"
#include "stagecraft/compiler/graph/autocast_guard.h"
#include "stagecraft/compiler/graph/operator_paths.h"
#include "stagecraft/compiler/libtorch/shares_memory.h"
#include "stagecraft/compiler/libtorch/type_text.h"
#include "stagecraft/compiler/native/count.h"
#include "stagecraft/compiler/native/on_driver.h"

namespace stagecraft {

Recorder::Recorder(const Workload& workload, const Tensors& inputs, const Tensors& labels) {
  graph_.parameters = workload.parameters;
  graph_.buffers = workload.buffers;
  const auto add_all = [&](const auto& tensors, ValueKind kind, auto&& tensor_of) {
    std::vector<ValueId> ids;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      ids.push_back(values_.add(tensor_of(tensors[i]), kind, static_cast<int>(i)));
    }
    return ids;
  };
  const auto itself = [](const at::Tensor& t) -> const at::Tensor& { return t; };
  const auto named = [](const NamedTensor& t) -> const at::Tensor& { return t.tensor; };
  graph_.inputs = add_all(inputs, ValueKind::Input, itself);
  graph_.labels = add_all(labels, ValueKind::Label, itself);
  add_all(workload.parameters, ValueKind::Parameter, named);
  add_all(workload.buffers, ValueKind::Buffer, named);
}

bool Recorder::before(const c10::OperatorHandle& op,
                      const torch::jit::Stack& stack,
                      int random_index) {
  std::vector<c10::IValue> arguments = arguments_on(stack, op);
  bool any_dependent = random_index >= 0 || op.schema().name() == kDriverOperator ||
                       op.schema().name() == kCountOperator;
  for (const c10::IValue& argument : arguments) {
    for_each_tensor(argument, [&](const at::Tensor& t) {
      if (constants_.dependent(t) || adopt(t)) {
        any_dependent = true;
        attachments_.join_custom_function(t);
      } else {
        constants_.see(op, t);
      }
    });
  }
  if (!any_dependent || compares_with_itself(op, arguments) ||
      (reads_values(op) && are_same_in_every_run(arguments))) {
    folding_ = std::move(arguments);
    return false;
  }
  open_is_fixed_ = shape_depends_on_values(op, arguments) && has_fixed_shape(op, arguments);
  if (!compares_floats(op, arguments) && !open_is_fixed_) {
    check_replayable(op, arguments);
  }
  open_ = node_of(op, arguments, random_index);
  return true;
}

/// Records a second handle of a known value that no operator made (.data(), torch::rand). For
/// autograd it equals a result of detach, so it is recorded as one.
bool Recorder::adopt(const at::Tensor& tensor) {
  if (tensor.requires_grad() || constants_.seen(tensor)) {
    return false;
  }
  const std::optional<ValueId> value = values_.find_same_memory(tensor);
  if (!value) {
    return false;
  }
  values_.append({.name = "aten::detach", .operands = {*value}, .annotations = open_annotations()},
                 tensor);
  return true;
}

Node Recorder::node_of(const c10::OperatorHandle& op,
                       const std::vector<c10::IValue>& arguments,
                       int random_index) {
  const std::vector<std::size_t> written = written_arguments(op, arguments);
  // Constants that this operator writes must exist in the graph as they are now, with the views
  // between them.
  for (const std::size_t i : written) {
    for_each_tensor(arguments[i], [&](const at::Tensor& t) { constants_.materialize(t); });
  }
  Node node;
  node.name = op.operator_name().name;
  node.overload = op.operator_name().overload_name;
  const std::optional<std::size_t> generator =
      random_index >= 0 ? generator_argument(op) : std::nullopt;
  const auto value_of = [&](const at::Tensor& t) { return constants_.value_of(t); };
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    node.operands.push_back(generator == i ? Operand(StageGenerator{})
                                           : operand_of(op, arguments[i], value_of));
  }
  for (const std::size_t i : written) {
    for_each_tensor(arguments[i], [&](const at::Tensor& t) {
      check_parameter_write(op, t);
      node.writes.push_back(constants_.value_of(t));
    });
  }
  node.annotations = open_annotations();
  node.autocast = AutocastGuard::now();
  node.grad_mode = at::GradMode::is_enabled();
  node.random_index = random_index;
  if (is_driver_code(node)) {
    node.function = static_cast<int>(graph_.attachments.size());
    graph_.attachments.emplace_back(internal::driver_code_in_call());
  }
  return node;
}

bool Recorder::is_same_in_every_run(const at::Tensor& tensor) {
  const std::optional<ValueId> value = values_.find(tensor);
  return value ? fixed_.rely_on(*value) : constants_.seen(tensor) && !constants_.dependent(tensor);
}

bool Recorder::are_same_in_every_run(const std::vector<c10::IValue>& arguments) {
  bool same = true;
  for (const c10::IValue& argument : arguments) {
    for_each_tensor(argument, [&](const at::Tensor& t) { same = same && is_same_in_every_run(t); });
  }
  return same;
}

/// A mask that never changes selects the same elements in every replay. Requires: the shape depends
/// on values.
bool Recorder::has_fixed_shape(const c10::OperatorHandle& op,
                               const std::vector<c10::IValue>& arguments) {
  const std::optional<std::size_t> shaping = shaping_argument(op);
  if (!shaping) {
    return are_same_in_every_run(arguments);
  }
  bool same = true;
  for_each_tensor(arguments[*shaping], [&](const at::Tensor& t) {
    same = same && (!shapes(op, t) || is_same_in_every_run(t));
  });
  return same;
}

/// Compares memory, because a view or detach() of a parameter is a value of its own. Compares
/// bytes, because buffers may be views of the same flat tensor.
void Recorder::check_parameter_write(const c10::OperatorHandle& op,
                                     const at::Tensor& written) const {
  for (const NamedTensor& parameter : graph_.parameters) {
    if (shares_memory(written, parameter.tensor)) {
      refuse_parameter_write(op,
                             value_name(graph_, *values_.find(parameter.tensor)),
                             /*through_another=*/!written.is_same(parameter.tensor));
    }
  }
}

void Recorder::after(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  Node node = std::move(*open_);
  open_.reset();
  if (op.schema().name() == kEqual) {
    node.answer = stack.back().toBool();
    if (*node.answer) {
      refuse_equal(op);
    }
  }
  record_results(node, op, stack);
  graph_.nodes.push_back(std::move(node));
}

void Recorder::record_results(Node& node,
                              const c10::OperatorHandle& op,
                              const torch::jit::Stack& stack) {
  bool tensors_only = true;
  for (const c10::IValue& result : results_on(stack, op)) {
    tensors_only = tensors_only && (result.isTensor() || result.isTensorList());
    const auto take = [&](const at::Tensor& t) {
      node.results.push_back(t.defined() ? values_.add_result(t) : kNoValue);
    };
    if (result.isTensor()) {
      take(result.toTensor());
    } else if (result.isTensorList()) {
      for (const at::Tensor& t : result.toTensorVector()) {
        take(t);
      }
    }
  }
  // A number that an operator computes from tensors without reading their values can only be a
  // property of the shape.
  SC_CHECK(tensors_only || node.results.empty(),
           "operator " + full_name(op) + " returns tensors mixed with numbers");
}

void Recorder::folded(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  constants_.fold(op, std::exchange(folding_, {}), stack);
}

void Recorder::check_hidden_read(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  if (open_ && (open_is_fixed_ || checks_what_it_reads(open_->name))) {
    return;
  }
  const std::vector<c10::IValue> arguments = arguments_on(stack, op);
  const bool decides = reads_values_inside(op) ? !are_same_in_every_run(arguments)
                                               : shape_depends_on_values(op, arguments) &&
                                                     !has_fixed_shape(op, arguments);
  if (decides) {
    refuse_hidden_read(running(), op);
  }
}

std::string Recorder::running() const {
  return open_ ? operator_name(*open_) : "an operator";
}

std::string Recorder::whereabouts() const {
  const std::string path = last_path(graph_);
  return path.empty() ? "" : fmt::format(" (near {})", path);
}

Graph Recorder::finish(const Tensors& outputs, const at::Tensor& loss, const Tensors& metrics) {
  fixed_.check();
  for (const at::Tensor& output : outputs) {
    attachments_.join_custom_function(output);
    graph_.outputs.push_back(constants_.value_of(output));
  }
  if (loss.defined()) {
    take_loss(loss);
  }
  for (const at::Tensor& metric : metrics) {
    graph_.metrics.push_back(constants_.value_of(metric));
  }
  (void)counts_in(graph_);  // refuses calls that do not add up
  return std::move(graph_);
}

void Recorder::take_loss(const at::Tensor& loss) {
  attachments_.join_custom_function(loss);
  const std::optional<ValueId> value = values_.find(loss);
  if (!value) {
    throw Error(Errc::CompileCapture,
                "the loss does not depend on any input or parameter; return a scalar computed from "
                "the model's outputs");
  }
  if (loss.numel() != 1 || !loss.is_floating_point()) {
    throw Error(Errc::CompileShape,
                fmt::format("the loss must be one floating-point number, found {} of shape {}; "
                            "reduce it (mean or sum)",
                            type_text(loss.scalar_type()),
                            c10::str(loss.sizes())));
  }
  graph_.loss = *value;
  attachments_.attach_hooks(loss);
}

}  // namespace stagecraft
