#include "stagecraft/compiler/capture/captured_attachments.h"

#include <optional>
#include <set>
#include <string>

#include <fmt/format.h>
#include <torch/csrc/autograd/function.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/capture/refusals.h"
#include "stagecraft/compiler/graph/custom_function.h"
#include "stagecraft/compiler/graph/tensor_hooks.h"

namespace stagecraft {

using torch::autograd::Edge;

void CapturedAttachments::join_custom_function(const at::Tensor& tensor) {
  const std::optional<ValueId> known = values_.find(tensor);
  if (!known || tensor.grad_fn() == nullptr || graph_.at(*known).kind != ValueKind::Computed ||
      values_.find(Edge(tensor.grad_fn(), static_cast<std::uint32_t>(tensor.output_nr())))) {
    return;
  }
  const ValueId raw = *known;
  const Node& producer = graph_.nodes[static_cast<std::size_t>(graph_.at(raw).position)];
  if (!CustomFunction::made(*tensor.grad_fn())) {
    if (!producer.grad_mode && !tensor.is_view()) {
      throw Error(
          Errc::CompileCapture,
          fmt::format(
              "the result of {}{} was given the autograd node {} by hand, which a replay cannot "
              "repeat: use a torch::autograd::Function, or ordinary operators",
              operator_name(producer),
              under_marker(),
              tensor.grad_fn()->name()));
    }
    return;
  }
  const std::size_t position = function_node_of(tensor, producer.annotations);
  const ValueId joined = values_.add(tensor, ValueKind::Computed, static_cast<int>(position));
  Node& node = graph_.nodes[position];
  const auto output = static_cast<std::size_t>(tensor.output_nr());
  std::get<ValueList>(node.operands[2]).values[output] = raw;
  node.results[output] = joined;
}

/// Returns the node of the function that made `output`. Appends it if this is the first of the
/// function's outputs to be used.
std::size_t CapturedAttachments::function_node_of(const at::Tensor& output,
                                                  std::vector<Annotation> annotations) {
  const auto& made_by = output.grad_fn();
  const auto known = functions_.find(made_by.get());
  if (known != functions_.end() && known->second.made_by.lock() == made_by) {
    return known->second.position;
  }
  CustomFunction::Taken taken = CustomFunction::take(made_by);
  Node node{.name = std::string(kFunctionNode), .annotations = std::move(annotations)};
  node.function = static_cast<int>(graph_.attachments.size());
  ValueList inputs, saved, outputs;
  for (const Edge& edge : made_by->next_edges()) {
    const std::optional<ValueId> value = edge.is_valid() ? values_.find(edge) : kNoValue;
    if (!value) {
      throw Error(Errc::CompileCapture,
                  fmt::format("the {} takes a tensor{} that no captured operator made ({}): give "
                              "it the results of operators",
                              taken.function->name(),
                              under_marker(),
                              edge.function->name()));
    }
    inputs.values.push_back(*value);
  }
  for (const at::Tensor& tensor : taken.saved) {
    saved.values.push_back(tensor.defined() ? saved_value(tensor) : kNoValue);
  }
  outputs.values.assign(made_by->num_inputs(), kNoValue);
  node.results.assign(made_by->num_inputs(), kNoValue);
  node.operands = {std::move(inputs), std::move(saved), std::move(outputs)};
  const std::size_t position = graph_.nodes.size();
  functions_[made_by.get()] = {made_by, position};
  graph_.attachments.emplace_back(std::move(taken.function));
  graph_.nodes.push_back(std::move(node));
  return position;
}

/// Returns the value of a tensor that autograd kept, which may be another handle of a known value.
ValueId CapturedAttachments::saved_value(const at::Tensor& tensor) {
  if (!values_.find(tensor)) {
    if (const auto same = values_.find_same_memory(tensor)) {
      return *same;
    }
  }
  return constants_.value_of(tensor);
}

void CapturedAttachments::attach_hooks(const at::Tensor& loss) {
  std::set<int> written;
  for (const Node& node : graph_.nodes) {
    for (const ValueId id : node.writes) {
      written.insert(graph_.at(id).alias_set);
    }
  }
  for (FoundHooks& found : find_hooks(loss)) {
    const std::optional<ValueId> value = values_.find(found.of);
    if (!value) {
      throw Error(
          Errc::CompileCapture,
          fmt::format(
              "a hook is registered on a tensor that no captured operator made (autograd node {}), "
              "so a replay cannot call it: register it on a parameter or on the result of an "
              "operator",
              found.of.function->name()));
    }
    Value& hooked = graph_.values[value->index()];
    const std::string name = fmt::format("{} hook{} on {}",
                                         found.calls.size(),
                                         found.calls.size() == 1 ? "" : "s",
                                         value_name(graph_, *value));
    if (written.contains(hooked.alias_set)) {
      throw Error(Errc::CompileCapture,
                  fmt::format("{} cannot be kept, because an operator writes that tensor's memory "
                              "in place: use the operator that returns a new tensor",
                              name));
    }
    hooked.hooks = static_cast<int>(graph_.attachments.size());
    graph_.attachments.emplace_back(
        std::make_shared<const TensorHooks>(name, std::move(found.calls)));
  }
}

}  // namespace stagecraft
