#include "stagecraft/compiler/recorder.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include <ATen/autocast_mode.h>
#include <ATen/core/List.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/function.h>

#include "stagecraft/base/check.h"
#include "stagecraft/compiler/custom_function.h"
#include "stagecraft/compiler/shares_memory.h"
#include "stagecraft/compiler/tensor_hooks.h"

namespace stagecraft {
namespace {

std::vector<c10::IValue> last(const torch::jit::Stack& stack, std::size_t count) {
  return {stack.end() - static_cast<std::ptrdiff_t>(count), stack.end()};
}

/// Calls `visit` for every defined tensor in an argument or result, lists included.
template <class Visit>
void for_each_tensor(const c10::IValue& value, Visit&& visit) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) {
      visit(value.toTensor());
    }
  } else if (value.isList()) {
    for (const c10::IValue& element : value.toListRef()) {
      for_each_tensor(element, visit);
    }
  }
}

/// Operators that write arguments their schema does not mark: the statistics, while training.
struct HiddenWrite {
  std::string_view name;
  std::array<std::size_t, 2> written;
  std::size_t only_if;
};
constexpr std::array kHiddenWrites{
    HiddenWrite{"aten::batch_norm", {3, 4}, 5},
    HiddenWrite{"aten::native_batch_norm", {3, 4}, 5},
    HiddenWrite{"aten::_batch_norm_impl_index", {3, 4}, 5},
    HiddenWrite{"aten::instance_norm", {3, 4}, 5},
};

std::vector<std::size_t> written_arguments(const c10::OperatorHandle& op,
                                           const std::vector<c10::IValue>& arguments) {
  std::vector<std::size_t> written;
  const auto& declared = op.schema().arguments();
  for (std::size_t i = 0; i < declared.size(); ++i) {
    if (declared[i].alias_info() != nullptr && declared[i].alias_info()->isWrite()) {
      written.push_back(i);
    }
  }
  for (const HiddenWrite& h : kHiddenWrites) {
    if (op.schema().name() == h.name && arguments[h.only_if].isBool() &&
        arguments[h.only_if].toBool()) {
      written.insert(written.end(), h.written.begin(), h.written.end());
    }
  }
  return written;
}

std::string full_name(const c10::OperatorHandle& op) {
  const auto& name = op.operator_name();
  return name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
}

bool is_mask(const c10::IValue& index) {
  bool mask = false;
  for_each_tensor(index, [&](const at::Tensor& t) {
    mask = mask || t.scalar_type() == at::kBool || t.scalar_type() == at::kByte;
  });
  return mask;
}

constexpr std::string_view kEqual = "aten::equal";
constexpr std::string_view kOneHot = "aten::one_hot";

/// Two tensors that are one: whatever the values.
bool compares_with_itself(const c10::OperatorHandle& op,
                          const std::vector<c10::IValue>& arguments) {
  return op.schema().name() == kEqual && arguments[0].toTensor().unsafeGetTensorImpl() ==
                                             arguments[1].toTensor().unsafeGetTensorImpl();
}

/// Attention asks whether query and key are the same tensor by comparing them. That two results of
/// arithmetic differ is recorded as an answer that every replay has to get again; of integers it
/// would be a decision on data.
bool compares_floats(const c10::OperatorHandle& op, const std::vector<c10::IValue>& arguments) {
  return op.schema().name() == kEqual && arguments[0].toTensor().is_floating_point() &&
         arguments[1].toTensor().is_floating_point();
}

bool shape_depends_on_values(const c10::OperatorHandle& op,
                             const std::vector<c10::IValue>& arguments) {
  if (op.schema().name() == "aten::index") {
    return is_mask(arguments[1]);  // tagged, but only masks make the shape depend on values
  }
  if (op.schema().name() == kOneHot) {
    return arguments[1].toInt() < 0;  // the number of classes is to be found in the values
  }
  return op.hasTag(at::Tag::dynamic_output_shape);
}

bool reads_values(const c10::OperatorHandle& op) {
  return op.hasTag(at::Tag::data_dependent_output) ||
         op.schema().name() == "aten::_local_scalar_dense" || op.schema().name() == "aten::item" ||
         op.schema().name() == "aten::is_nonzero";
}

Autocast autocast_now() {
  return {at::autocast::is_autocast_enabled(at::kCPU), at::autocast::get_autocast_dtype(at::kCPU)};
}

}  // namespace

bool draws_random_numbers(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  if (!op.hasTag(at::Tag::nondeterministic_seeded)) {
    return false;
  }
  const auto& declared = op.schema().arguments();
  const std::size_t first = stack.size() - declared.size();
  for (std::size_t i = 0; i < declared.size(); ++i) {
    const std::string& name = declared[i].name();
    const c10::IValue& value = stack[first + i];
    const bool off = (name == "p" || name == "dropout_p" || name == "dropout") &&
                     value.isDouble() && value.toDouble() == 0.0;
    const bool evaluating =
        (name == "train" || name == "training") && value.isBool() && !value.toBool();
    if (off || evaluating) {
      return false;
    }
  }
  return true;
}

std::optional<std::size_t> generator_argument(const c10::OperatorHandle& op) {
  const auto& declared = op.schema().arguments();
  for (std::size_t i = 0; i < declared.size(); ++i) {
    if (declared[i].name() == "generator") {
      return i;
    }
  }
  return std::nullopt;
}

std::string under_marker() {
  bool loss = false;
  for (const Annotation& a : open_annotations()) {
    if (a.tag == kStageTag) {
      return fmt::format(" (in stage \"{}\")", a.name);
    }
    loss = loss || a.tag == kLossTag;
  }
  return loss ? " (in the loss)" : " (outside all stages)";
}

Recorder::Recorder(const Workload& workload, const Tensors& inputs, const Tensors& labels) {
  graph_.parameters = workload.parameters;
  graph_.buffers = workload.buffers;
  const auto add_all = [&](const auto& tensors, ValueKind kind, auto&& tensor_of) {
    std::vector<ValueId> ids;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      ids.push_back(add_value(tensor_of(tensors[i]), kind, static_cast<int>(i)));
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
  std::vector<c10::IValue> arguments = last(stack, op.schema().arguments().size());
  bool any_dependent = random_index >= 0;
  for (const c10::IValue& argument : arguments) {
    for_each_tensor(argument, [&](const at::Tensor& t) {
      if (dependent(t) || adopt(t)) {
        any_dependent = true;
        join_custom_function(t);
      } else {
        see_constant(op, t);
      }
    });
  }
  if (!any_dependent || compares_with_itself(op, arguments)) {
    folding_ = std::move(arguments);
    return false;
  }
  if (!compares_floats(op, arguments)) {
    refuse_unreplayable(op, arguments);
  }
  open_ = node_of(op, arguments, random_index);
  return true;
}

void Recorder::after(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  Node node = std::move(*open_);
  open_.reset();
  if (op.schema().name() == kEqual) {
    node.answer = stack.back().toBool();
    refuse_chance(op, node);
  }
  record_results(node, op, stack);
  graph_.nodes.push_back(std::move(node));
}

void Recorder::record_results(Node& node,
                              const c10::OperatorHandle& op,
                              const torch::jit::Stack& stack) {
  bool tensors_only = true;
  for (const c10::IValue& result : last(stack, op.schema().returns().size())) {
    tensors_only = tensors_only && (result.isTensor() || result.isTensorList());
    const auto take = [&](const at::Tensor& t) {
      if (!t.defined()) {
        node.results.push_back(kNoValue);
        return;
      }
      const auto known = values_.find(t.unsafeGetTensorImpl());
      const ValueId id =
          known != values_.end()
              ? known->second
              : add_value(t, ValueKind::Computed, static_cast<int>(graph_.nodes.size()));
      graph_.values[id.index()].requires_grad = t.requires_grad();
      gradients_.note(
          t, id);  // an operator that writes in place gives a known value another node of autograd
      node.results.push_back(id);
    };
    if (result.isTensor()) {
      take(result.toTensor());
    } else if (result.isTensorList()) {
      for (const at::Tensor& t : result.toTensorVector()) {
        take(t);
      }
    }
  }
  // A number that comes out of tensors without being a read of their values can only be a property
  // of the shape.
  SC_CHECK(tensors_only || node.results.empty(),
           "operator " + full_name(op) + " returns tensors mixed with numbers");
}

void Recorder::folded(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  const std::vector<c10::IValue> arguments = std::move(folding_);
  folding_.clear();
  const auto& returns = op.schema().returns();
  const bool makes_view = returns.size() == 1 && returns[0].alias_info() != nullptr &&
                          !returns[0].alias_info()->isWrite();
  for (const c10::IValue& result : last(stack, returns.size())) {
    for_each_tensor(result, [&](const at::Tensor& t) {
      see_constant(op, t);
      if (makes_view && result.isTensor()) {
        folded_views_.try_emplace(t.unsafeGetTensorImpl(), FoldedView{op, arguments});
      }
    });
  }
}

bool Recorder::dependent(const at::Tensor& tensor) const {
  if (values_.contains(tensor.unsafeGetTensorImpl())) {
    return true;
  }
  if (!tensor.has_storage()) {
    return false;
  }
  // A view of a constant that a dependent operator has written since: its contents are no constant
  // any more.
  const auto set = alias_sets_.find(tensor.storage().unsafeGetStorageImpl());
  return set != alias_sets_.end() && dependent_sets_.contains(set->second) &&
         constants_.contains(tensor.unsafeGetTensorImpl());
}

/// A second handle on a known value that no operator made (.data(), torch::rand): for autograd it
/// is what detach returns, and so it is recorded.
bool Recorder::adopt(const at::Tensor& tensor) {
  if (!tensor.has_storage() || tensor.requires_grad() ||
      constants_.contains(tensor.unsafeGetTensorImpl())) {
    return false;
  }
  const auto set = alias_sets_.find(tensor.storage().unsafeGetStorageImpl());
  if (set == alias_sets_.end()) {
    return false;
  }
  const Layout layout(tensor);
  for (const auto& [value, known] : values_of_set_[set->second]) {
    if (known == layout) {
      Node node{.name = "aten::detach", .operands = {value}, .annotations = open_annotations()};
      node.results.push_back(
          add_value(tensor, ValueKind::Computed, static_cast<int>(graph_.nodes.size())));
      graph_.nodes.push_back(std::move(node));
      return true;
    }
  }
  return false;
}

void Recorder::see_constant(const c10::OperatorHandle& op, const at::Tensor& tensor) {
  if (constants_.contains(tensor.unsafeGetTensorImpl())) {
    return;
  }
  if (tensor.requires_grad()) {
    throw Error(
        Errc::CompileCapture,
        fmt::format(
            "{} reads a tensor of shape {} that requires a gradient but is neither an input nor a "
            "registered parameter{}; register it with register_parameter, or detach it",
            full_name(op),
            c10::str(tensor.sizes()),
            under_marker()));
  }
  if (tensor.has_storage()) {
    const auto set = alias_sets_.find(tensor.storage().unsafeGetStorageImpl());
    if (set != alias_sets_.end() && dependent_sets_.contains(set->second)) {
      throw Error(Errc::CompileCapture,
                  fmt::format("{} reads a tensor of shape {} that shares its memory with a value "
                              "of the model but was not "
                              "made by an operator{}; use one (detach, view, slice)",
                              full_name(op),
                              c10::str(tensor.sizes()),
                              under_marker()));
    }
  }
  constants_.insert(tensor.unsafeGetTensorImpl());
  hold(tensor);
}

void Recorder::refuse_unreplayable(const c10::OperatorHandle& op,
                                   const std::vector<c10::IValue>& arguments) const {
  if (reads_values(op)) {
    throw Error(Errc::CompileCapture,
                fmt::format("{} reads a value that depends on an input or parameter{}; what it "
                            "decides would be frozen "
                            "into the captured graph: keep the decision in tensors (torch::where), "
                            "or move it out of the module",
                            full_name(op),
                            under_marker()));
  }
  if (shape_depends_on_values(op, arguments)) {
    throw Error(Errc::CompileCapture,
                fmt::format("the shape of what {} returns depends on the values of an input or "
                            "parameter{}; captured shapes "
                            "are fixed: use an operator with a fixed shape (masking with "
                            "torch::where instead of selecting)",
                            full_name(op),
                            under_marker()));
  }
}

void Recorder::refuse_chance(const c10::OperatorHandle& op, const Node& node) const {
  if (*node.answer) {
    throw Error(
        Errc::CompileCapture,
        fmt::format(
            "{} finds two different tensors equal{}; what the module decides by that depends on "
            "their "
            "values and would be frozen into the captured graph: keep the decision in tensors "
            "(torch::where), or move it out of the module",
            full_name(op),
            under_marker()));
  }
}

void Recorder::check_hidden_read(const c10::OperatorHandle& op,
                                 const torch::jit::Stack& stack) const {
  if (open_ && (open_->name == kOneHot || open_->name == kEqual)) {
    // What it finds it looks for again in every replay: classes out of range, another answer.
    return;
  }
  const std::vector<c10::IValue> arguments = last(stack, op.schema().arguments().size());
  const bool reads = op.hasTag(at::Tag::data_dependent_output) ||
                     op.schema().name() == "aten::_local_scalar_dense";
  if (!reads && !shape_depends_on_values(op, arguments)) {
    return;
  }
  bool constants_only = true;
  for (const c10::IValue& argument : arguments) {
    for_each_tensor(argument, [&](const at::Tensor& t) {
      constants_only =
          constants_only && constants_.contains(t.unsafeGetTensorImpl()) && !dependent(t);
    });
  }
  if (!constants_only) {
    throw Error(Errc::CompileCapture,
                fmt::format("{} reads, through {}, a value that depends on an input or "
                            "parameter{}; what it decides would be "
                            "frozen into the captured graph: keep the decision in tensors "
                            "(torch::where), or move it out of the module",
                            open_ ? operator_name(*open_) : std::string("an operator"),
                            full_name(op),
                            under_marker()));
  }
}

void Recorder::refuse_hidden_draw(const c10::OperatorHandle& op) const {
  throw Error(Errc::CompileCapture,
              fmt::format("{} draws random numbers inside{} (through {}); its draws could not be "
                          "repeated in another cut: "
                          "set its dropout to 0 and apply dropout as an operator of its own",
                          open_ ? operator_name(*open_) : std::string("an operator"),
                          under_marker(),
                          full_name(op)));
}

/// A custom function's operators run without gradients; what they return is given one afterwards,
/// which is seen when it is next used.
void Recorder::join_custom_function(const at::Tensor& tensor) {
  const auto known = values_.find(tensor.unsafeGetTensorImpl());
  if (known == values_.end() || tensor.grad_fn() == nullptr ||
      graph_.at(known->second).kind != ValueKind::Computed ||
      gradients_.value_of({tensor.grad_fn(), static_cast<std::uint32_t>(tensor.output_nr())})) {
    return;
  }
  const ValueId raw = known->second;
  const Node& producer = graph_.nodes[static_cast<std::size_t>(graph_.at(raw).position)];
  if (!CustomFunction::made(*tensor.grad_fn())) {
    if (!producer.grad_mode && !tensor.is_view()) {
      throw Error(
          Errc::CompileCapture,
          fmt::format(
              "what {} returns{} was given the autograd node {} by hand; a replay could not: use a "
              "torch::autograd::Function, or ordinary operators",
              operator_name(producer),
              under_marker(),
              tensor.grad_fn()->name()));
    }
    return;
  }
  const std::size_t position = function_node_of(tensor, producer.annotations);
  const ValueId joined = add_value(tensor, ValueKind::Computed, static_cast<int>(position));
  Node& node = graph_.nodes[position];
  const auto output = static_cast<std::size_t>(tensor.output_nr());
  std::get<ValueList>(node.operands[2]).values[output] = raw;
  node.results[output] = joined;
}

/// The node of the function that made `output`, appended when this is the first of its outputs to
/// be used.
std::size_t Recorder::function_node_of(const at::Tensor& output,
                                       std::vector<Annotation> annotations) {
  const auto& made_by = output.grad_fn();
  const auto known = functions_.find(made_by.get());
  if (known != functions_.end() && known->second.first.lock() == made_by) {
    return known->second.second;
  }
  CustomFunction::Taken taken = CustomFunction::take(made_by);
  Node node{.name = std::string(kFunctionNode), .annotations = std::move(annotations)};
  node.function = static_cast<int>(graph_.attachments.size());
  ValueList inputs, saved, outputs;
  for (const torch::autograd::Edge& edge : made_by->next_edges()) {
    const std::optional<ValueId> value = edge.is_valid() ? gradients_.value_of(edge) : kNoValue;
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

/// A tensor that autograd kept may be another handle on a value.
ValueId Recorder::saved_value(const at::Tensor& tensor) {
  if (!values_.contains(tensor.unsafeGetTensorImpl()) && tensor.has_storage()) {
    const auto set = alias_sets_.find(tensor.storage().unsafeGetStorageImpl());
    const Layout layout(tensor);
    if (set != alias_sets_.end()) {
      for (const auto& [value, known] : values_of_set_[set->second]) {
        if (known == layout) {
          return value;
        }
      }
    }
  }
  return value_of(tensor);
}

void Recorder::attach_hooks(const at::Tensor& loss) {
  std::set<int> written;
  for (const Node& node : graph_.nodes) {
    for (const ValueId id : node.writes) {
      written.insert(graph_.at(id).alias_set);
    }
  }
  for (FoundHooks& found : find_hooks(loss)) {
    const std::optional<ValueId> value = gradients_.value_of(found.of);
    if (!value) {
      throw Error(
          Errc::CompileCapture,
          fmt::format(
              "a hook is registered on a tensor that no captured operator made (autograd node {}); "
              "a replay "
              "could not call it: register it on a parameter or on the result of an operator",
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
                              "in place: use the operator "
                              "that returns a new tensor",
                              name));
    }
    hooked.hooks = static_cast<int>(graph_.attachments.size());
    graph_.attachments.emplace_back(
        std::make_shared<const TensorHooks>(name, std::move(found.calls)));
  }
}

Node Recorder::node_of(const c10::OperatorHandle& op,
                       const std::vector<c10::IValue>& arguments,
                       int random_index) {
  const std::vector<std::size_t> written = written_arguments(op, arguments);
  // Constants that this operator writes must exist in the graph as they are now, with the views
  // between them.
  for (const std::size_t i : written) {
    for_each_tensor(arguments[i], [&](const at::Tensor& t) { materialize(t); });
  }
  Node node;
  node.name = op.operator_name().name;
  node.overload = op.operator_name().overload_name;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    node.operands.push_back(operand_of(op, arguments[i], i, random_index >= 0));
  }
  for (const std::size_t i : written) {
    for_each_tensor(arguments[i], [&](const at::Tensor& t) {
      refuse_parameter_write(node, t);
      node.writes.push_back(value_of(t));
    });
  }
  node.annotations = open_annotations();
  node.autocast = autocast_now();
  node.grad_mode = at::GradMode::is_enabled();
  node.random_index = random_index;
  return node;
}

/// By memory, because a view or detach() of a parameter is a value of its own, and by bytes of it,
/// because buffers may be views of the same flat tensor.
void Recorder::refuse_parameter_write(const Node& node, const at::Tensor& written) const {
  for (const NamedTensor& parameter : graph_.parameters) {
    if (shares_memory(written, parameter.tensor)) {
      throw Error(
          Errc::CompileCapture,
          fmt::format(
              "{} writes the parameter {}{} inside forward{}; only the optimizer may change "
              "parameters: use a buffer, write a clone() of it, or change it outside of forward",
              operator_name(node),
              value_name(graph_, values_.at(parameter.tensor.unsafeGetTensorImpl())),
              written.is_same(parameter.tensor) ? ""
                                                : " (through a view, detach() or data() of it)",
              under_marker()));
    }
  }
}

Operand Recorder::operand_of(const c10::OperatorHandle& op,
                             const c10::IValue& argument,
                             std::size_t position,
                             bool random) {
  if (argument.isTensor()) {
    return argument.toTensor().defined() ? Operand(value_of(argument.toTensor()))
                                         : Operand(c10::IValue(at::Tensor()));
  }
  if (random && generator_argument(op) == position) {
    return StageGenerator{};
  }
  if (argument.isDevice()) {
    if (!argument.toDevice().is_cpu()) {
      throw Error(Errc::CompileCapture,
                  fmt::format("{} names the device {}{}; a stage runs on the device of its worker: "
                              "leave the device out, or "
                              "take it from an input's options",
                              full_name(op),
                              argument.toDevice().str(),
                              under_marker()));
    }
    return StageDevice{};
  }
  if (argument.isTensorList()) {
    ValueList list;
    for (const at::Tensor& t : argument.toTensorVector()) {
      list.values.push_back(value_of(t));
    }
    return list;
  }
  const auto is_tensor = [](const c10::IValue& v) { return v.isTensor(); };
  if (argument.isList() && std::ranges::any_of(argument.toListRef(), is_tensor)) {
    ValueList list{.values = {}, .optional_elements = true};
    for (const c10::IValue& element : argument.toListRef()) {
      const bool present = element.isTensor() && element.toTensor().defined();
      list.values.push_back(present ? value_of(element.toTensor()) : kNoValue);
    }
    return list;
  }
  return argument;
}

ValueId Recorder::value_of(const at::Tensor& tensor) {
  const auto known = values_.find(tensor.unsafeGetTensorImpl());
  if (known != values_.end()) {
    return known->second;
  }
  return dependent(tensor) ? materialize(tensor) : lift(tensor);
}

ValueId Recorder::lift(const at::Tensor& tensor) {
  const Impl impl = tensor.unsafeGetTensorImpl();
  const auto version = static_cast<std::uint32_t>(tensor._version());
  const auto known = lifted_.find(impl);
  if (known != lifted_.end() && known->second.second == version) {
    return known->second.first;
  }
  at::Tensor copy = tensor.detach().clone();
  if (impl->is_wrapped_number()) {
    copy.unsafeGetTensorImpl()->set_wrapped_number(true);  // promotes types less than a tensor does
  }
  const ValueId id{static_cast<int>(graph_.values.size())};
  graph_.values.push_back({ValueKind::Constant,
                           static_cast<int>(graph_.constants.size()),
                           tensor.sizes().vec(),
                           tensor.scalar_type(),
                           false,
                           alias_set_of(copy)});
  graph_.constants.push_back(std::move(copy));
  lifted_[impl] = {id, version};
  hold(tensor);
  return id;
}

ValueId Recorder::materialize(const at::Tensor& tensor) {
  const Impl impl = tensor.unsafeGetTensorImpl();
  const auto known = values_.find(impl);
  if (known != values_.end()) {
    return known->second;
  }
  const auto view = folded_views_.find(impl);
  if (view != folded_views_.end()) {
    append_view(view->second, tensor);
    return values_.at(impl);
  }
  // What is written is no constant: each run has its own, made by the stage that writes it.
  Node node{.name = "aten::clone",
            .operands = {lift(tensor), c10::IValue()},
            .annotations = open_annotations()};
  node.results.push_back(
      add_value(tensor, ValueKind::Computed, static_cast<int>(graph_.nodes.size())));
  graph_.nodes.push_back(std::move(node));
  return values_.at(impl);
}

void Recorder::append_view(const FoldedView& view, const at::Tensor& result) {
  for (const c10::IValue& argument : view.arguments) {
    for_each_tensor(argument, [&](const at::Tensor& t) { materialize(t); });
  }
  Node node;
  node.name = view.op.operator_name().name;
  node.overload = view.op.operator_name().overload_name;
  for (std::size_t i = 0; i < view.arguments.size(); ++i) {
    node.operands.push_back(operand_of(view.op, view.arguments[i], i, false));
  }
  node.annotations = open_annotations();
  node.results.push_back(
      add_value(result, ValueKind::Computed, static_cast<int>(graph_.nodes.size())));
  graph_.nodes.push_back(std::move(node));
}

ValueId Recorder::add_value(const at::Tensor& tensor, ValueKind kind, int position) {
  const ValueId id{static_cast<int>(graph_.values.size())};
  const int set = alias_set_of(tensor);
  graph_.values.push_back(
      {kind, position, tensor.sizes().vec(), tensor.scalar_type(), tensor.requires_grad(), set});
  values_[tensor.unsafeGetTensorImpl()] = id;
  gradients_.note(tensor, id);
  if (tensor.has_storage()) {
    dependent_sets_.insert(set);
    values_of_set_[set].emplace_back(id, Layout(tensor));
  }
  hold(tensor);
  return id;
}

int Recorder::alias_set_of(const at::Tensor& tensor) {
  const int fresh = static_cast<int>(alias_sets_.size()) + 1;
  if (!tensor.has_storage()) {
    return 0;
  }
  c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
  const auto [entry, added] = alias_sets_.try_emplace(storage, fresh);
  if (added) {
    storages_.push_back(tensor.storage().getWeakStorageImpl());
  }
  return entry->second;
}

void Recorder::hold(const at::Tensor& tensor) {
  impls_.emplace_back(tensor.getIntrusivePtr());
}

Graph Recorder::finish(const Tensors& outputs, const at::Tensor& loss) {
  for (const at::Tensor& output : outputs) {
    join_custom_function(output);
    graph_.outputs.push_back(value_of(output));
  }
  join_custom_function(loss);
  const auto known = values_.find(loss.unsafeGetTensorImpl());
  if (known == values_.end()) {
    throw Error(Errc::CompileCapture,
                "the loss does not depend on any input or parameter; return a scalar computed from "
                "the model's outputs");
  }
  if (loss.numel() != 1 || !loss.is_floating_point()) {
    throw Error(Errc::CompileShape,
                fmt::format("the loss must be one floating-point number, found {} of shape {}; "
                            "reduce it (mean or sum)",
                            at::toString(loss.scalar_type()),
                            c10::str(loss.sizes())));
  }
  graph_.loss = known->second;
  attach_hooks(loss);
  return std::move(graph_);
}

}  // namespace stagecraft
