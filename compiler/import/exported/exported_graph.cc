#include "stagecraft/compiler/import/exported/exported_graph.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/core/stack.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include "stagecraft/base/check.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/capture/operator_traits.h"
#include "stagecraft/compiler/graph/autocast_guard.h"
#include "stagecraft/compiler/import/exported/exported_call.h"
#include "stagecraft/compiler/import/exported/exported_symbols.h"
#include "stagecraft/compiler/libtorch/allowed_operators.h"
#include "stagecraft/compiler/libtorch/foreign_failure.h"
#include "stagecraft/compiler/libtorch/program_device.h"

namespace stagecraft::exported {
namespace {

constexpr int kNoSlot = -1;
constexpr int kNoRoot = -1;
constexpr std::string_view kControl = "torch.ops.higher_order.";

/// RegionMode is the mode in which a graph inside another one runs.
struct RegionMode {
  std::optional<bool> gradients;
  struct AutocastSetting {
    bool enabled = false;
    std::optional<at::ScalarType> dtype;  ///< the present one if the file names none
  };
  std::optional<AutocastSetting> autocast;  ///< of the program's device
};

class RegionGuard {
 public:
  explicit RegionGuard(const RegionMode& mode)
      : gradients_(mode.gradients.value_or(at::GradMode::is_enabled())) {
    if (mode.autocast) {
      autocast_.emplace();
      AutocastGuard::set({.enabled = mode.autocast->enabled,
                          .dtype = mode.autocast->dtype.value_or(AutocastGuard::now().dtype)});
    }
  }

 private:
  at::AutoGradMode gradients_;
  std::optional<AutocastGuard> autocast_;
};

/// BoundOutput is an output of the graph: a value, or a constant of the export.
struct BoundOutput {
  int slot = kNoSlot;
  c10::IValue constant;
};

struct BoundNode {
  std::string label;
  std::optional<c10::OperatorHandle> op;  ///< or symbol, or region
  ArgumentCheck check = nullptr;          ///< of the operator's arguments
  SymbolFunction symbol = nullptr;        ///< a function of numbers
  std::shared_ptr<const ExportedGraph> region;
  RegionMode mode;
  std::vector<BoundArgument> arguments;
  std::vector<std::vector<int>> results;  ///< by return value: the slots of its tensors
  std::vector<int> last_uses;             ///< slots that no later node reads
};

/// Runs the body and adds the node's name to its errors.
template <class F>
void told_of(const BoundNode& node, F&& body) {
  try {
    body();
  } catch (Error& e) {
    e.with({.task = node.label});
    throw;
  } catch (const std::exception& e) {
    throw foreign_failure(e, Errc::CompileCapture, node.label + " failed");
  }
}

void keep_results(const BoundNode& node,
                  const torch::jit::Stack& returned,
                  std::vector<c10::IValue>& slots) {
  const auto keep = [&](int slot, const c10::IValue& value) {
    if (slot != kNoSlot) {
      slots[static_cast<std::size_t>(slot)] = value;
    }
  };
  for (std::size_t i = 0; i < node.results.size(); ++i) {
    const std::vector<int>& wanted = node.results[i];
    if (!returned[i].isTensorList()) {
      for (const int slot : wanted) {
        keep(slot, returned[i]);
      }
      continue;
    }
    const std::vector<at::Tensor> list = returned[i].toTensorVector();
    if (list.size() != wanted.size()) {
      throw Error(Errc::CompileCapture,
                  fmt::format("it returned a list of {} tensors, and the file has {} names for "
                              "them; train it with inputs of the shapes it was exported with",
                              list.size(),
                              wanted.size()));
    }
    for (std::size_t k = 0; k < wanted.size(); ++k) {
      keep(wanted[k], list[k]);
    }
  }
}

}  // namespace

struct ExportedGraph::Bound {
  std::vector<int> inputs;  ///< slots; kNoSlot if the input is a constant
  std::vector<BoundNode> nodes;
  std::vector<BoundOutput> outputs;
  std::size_t slots = 0;

  std::vector<bool> written_inputs;
  std::vector<int> output_roots;
  std::vector<bool> output_dependent;
  std::map<std::string, int> operators;
  bool some_train = false;
  bool some_evaluate = false;
};

/// Binder reads a graph from front to back and keeps the facts known of each slot so far.
class ExportedGraph::Binder {
 public:
  Binder(const Graph& graph, std::vector<Unsupported>& unsupported)
      : graph_(graph), unsupported_(unsupported) {}

  Bound bind(const InputFacts& facts) {
    bound_.written_inputs.assign(graph_.inputs.size(), false);
    for (std::size_t i = 0; i < graph_.inputs.size(); ++i) {
      const auto* name = std::get_if<ValueName>(&graph_.inputs[i].value);
      bound_.inputs.push_back(name == nullptr ? kNoSlot
                                              : make(name->name, facts.dependent.at(i), int(i)));
    }
    for (const Node& node : graph_.nodes) {
      bind_node(node);
    }
    for (const Argument& output : graph_.outputs) {
      bind_output(output);
    }
    find_last_uses();
    bound_.slots = facts_.size();
    return std::move(bound_);
  }

 private:
  struct SlotFacts {
    bool dependent = false;
    int root = kNoRoot;    ///< the input whose memory it shows
    c10::IValue stand_in;  ///< an empty tensor of its dtype, or a number
  };

  int make(const std::string& name, bool dependent, int root) {
    const int slot = static_cast<int>(facts_.size());
    if (!names_.emplace(name, slot).second) {
      throw Error(Errc::UsageFile,
                  fmt::format("the value {} is made twice; every value has one origin", name));
    }
    const auto found = graph_.tensors.find(name);
    facts_.push_back({dependent,
                      root,
                      found == graph_.tensors.end()
                          ? c10::IValue(1)
                          : at::empty({0}, at::TensorOptions().dtype(found->second.dtype))});
    return slot;
  }

  int slot_of(const std::string& name) const {
    const auto found = names_.find(name);
    if (found == names_.end()) {
      throw Error(
          Errc::UsageFile,
          fmt::format("the value {} is used, but no input and no node before makes it", name));
    }
    return found->second;
  }

  SlotFacts& at(int slot) { return facts_[static_cast<std::size_t>(slot)]; }

  void bind_node(const Node& node) {
    const bool control = node.target.starts_with(kControl);
    const bool nothing_returned = std::ranges::all_of(
        node.outputs, [](const Argument& a) { return std::holds_alternative<None>(a.value); });
    if (is_check(node.target) && nothing_returned) {
      return;
    }
    BoundNode bound;
    bound.label = node.path.empty() ? fmt::format("node {}", node.name)
                                    : fmt::format("node {} (in {})", node.name, node.path);
    std::string why;
    if (control) {
      bind_region(node, bound, why);
    } else if (const auto symbol = symbol_function(node.target)) {
      bind_symbol(node, *symbol, bound, why);
    } else {
      try {
        bind_operator(node, bound, why);
      } catch (const c10::Error& e) {  // an argument has another kind than the query takes
        why = fmt::format("{}: {}", node.target, e.what_without_backtrace());
      }
    }
    if (!why.empty()) {
      unsupported_.push_back({node.name, node.path, why});
      // Make its results known by name, so that all other nodes can be checked.
      for_each_name(node.outputs, [&](const std::string& name) {
        if (!names_.contains(name)) {
          make(name, true, kNoRoot);
        }
      });
      return;
    }
    bound_.nodes.push_back(std::move(bound));
  }

  /// Returns whether the node only checks an assumption of the exporter. LibTorch's operators check
  /// what they need.
  static bool is_check(std::string_view target) {
    constexpr std::array kChecks{"torch.ops.aten._assert_tensor_metadata.",
                                 "torch.ops.aten._assert_scalar.",
                                 "torch.ops.aten._assert_async.",
                                 "torch.ops.aten.sym_constrain_range.",
                                 "torch.ops.aten.sym_constrain_range_for_size."};
    return std::ranges::any_of(kChecks,
                               [&](const char* check) { return target.starts_with(check); });
  }

  static void flatten(const std::vector<Argument>& arguments, std::vector<const Argument*>& flat) {
    for (const Argument& a : arguments) {
      if (const auto* list = std::get_if<List>(&a.value)) {
        flatten(list->elements, flat);
      } else {
        flat.push_back(&a);
      }
    }
  }

  template <class Visit>
  static void for_each_name(const std::vector<Argument>& arguments, Visit&& visit) {
    for (const Argument& a : arguments) {
      if (const auto* name = std::get_if<ValueName>(&a.value)) {
        visit(name->name);
      } else if (const auto* list = std::get_if<List>(&a.value)) {
        for_each_name(list->elements, visit);
      }
    }
  }

  /// Makes the slots of one return value: a tensor or number, or a list of tensors.
  std::vector<int> make_results(const Argument& output, bool dependent, int root) {
    std::vector<int> slots;
    if (const auto* name = std::get_if<ValueName>(&output.value)) {
      slots.push_back(make(name->name, dependent, root));
    } else if (const auto* list = std::get_if<List>(&output.value)) {
      for (const Argument& element : list->elements) {
        const auto* inner = std::get_if<ValueName>(&element.value);
        slots.push_back(inner == nullptr ? kNoSlot : make(inner->name, dependent, root));
      }
    }
    return slots;
  }

  void bind_operator(const Node& node, BoundNode& bound, std::string& why) {
    auto call = bind_call(
        node, [this](const std::string& name) { return slot_of(name); }, why);
    if (!call) {
      return;
    }
    const c10::OperatorHandle& op = call->op;
    const auto& declared = op.schema().arguments();
    bool dependent = op.hasTag(at::Tag::nondeterministic_seeded);
    std::vector<c10::IValue> known;  // each argument, as far as it is known
    for (std::size_t i = 0; i < declared.size(); ++i) {
      for_each_slot(call->arguments[i],
                    [&](int slot) { dependent = dependent || at(slot).dependent; });
      known.push_back(stand_in(call->arguments[i]));
      note_mode(declared[i].name(), known.back());
    }
    if (dependent && reads_values(op)) {
      why = fmt::format(
          "{} reads a value that depends on an input or parameter: a decision by it would be "
          "frozen "
          "into the captured graph; keep the decision in tensors (torch.where)",
          op.schema().name());
      return;
    }
    if (dependent && op.hasTag(at::Tag::dynamic_output_shape) &&
        shape_depends_on_values(op, known) && !shaped_by_constants(*call)) {
      why = fmt::format(
          "the shape of the result of {} depends on the values of an input or parameter; use an "
          "operator with a fixed shape (masking with torch.where)",
          op.schema().name());
      return;
    }
    const auto& returns = op.schema().returns();
    if (!node.outputs.empty() && !returns.empty() && node.outputs.size() != returns.size()) {
      why = fmt::format("{} returns {} values, and the file has names for {}",
                        op.schema().name(),
                        returns.size(),
                        node.outputs.size());
      return;
    }
    ++bound_.operators[op.schema().name()];
    const int root = root_of(*call);
    for (const std::size_t i : written_arguments(op, known)) {
      note_write(call->arguments[i]);
    }
    for (std::size_t i = 0; i < std::min(returns.size(), node.outputs.size()); ++i) {
      const bool view = returns[i].alias_info() != nullptr;
      bound.results.push_back(make_results(node.outputs[i], dependent, view ? root : kNoRoot));
    }
    bound.label += fmt::format(", {}", c10::toString(op.operator_name()));
    bound.op = op;
    bound.check = argument_check(op.operator_name());
    bound.arguments = std::move(call->arguments);
  }

  c10::IValue stand_in(const BoundArgument& argument) const {
    if (argument.is_list && argument.elements != BoundArgument::Elements::Tensors &&
        argument.elements != BoundArgument::Elements::OptionalTensors) {
      return {};
    }
    if (!argument.is_list) {
      return argument.slot >= 0 ? facts_[static_cast<std::size_t>(argument.slot)].stand_in
                                : argument.constant;
    }
    c10::List<std::optional<at::Tensor>> list;
    for (const BoundArgument& element : argument.list) {
      const c10::IValue value = stand_in(element);
      list.push_back(value.isTensor() ? std::optional(value.toTensor()) : std::nullopt);
    }
    return list;
  }

  /// Decides as the recorder does later.
  bool shaped_by_constants(const ExportedCall& call) const {
    const std::optional<std::size_t> shaping = shaping_argument(call.op);
    if (!shaping) {
      return false;
    }
    bool constant = true;
    for_each_slot(call.arguments[*shaping], [&](int slot) {
      const SlotFacts& facts = facts_[static_cast<std::size_t>(slot)];
      const at::ScalarType dtype =
          facts.stand_in.isTensor() ? facts.stand_in.toTensor().scalar_type() : at::kLong;
      const bool mask = dtype == at::kBool || dtype == at::kByte;
      constant = constant && !(mask && facts.dependent);
    });
    return constant;
  }

  void note_mode(const std::string& name, const c10::IValue& value) {
    if ((name == "train" || name == "training") && value.isBool()) {
      (value.toBool() ? bound_.some_train : bound_.some_evaluate) = true;
    }
  }

  /// Returns the input whose memory a view returned by the operator shows.
  int root_of(const ExportedCall& call) {
    const auto& declared = call.op.schema().arguments();
    int root = kNoRoot;
    for (std::size_t i = 0; i < declared.size(); ++i) {
      if (declared[i].alias_info() != nullptr) {
        for_each_slot(call.arguments[i],
                      [&](int slot) { root = root == kNoRoot ? at(slot).root : root; });
      }
    }
    return root;
  }

  void note_write(const BoundArgument& argument) {
    for_each_slot(argument, [&](int slot) {
      if (at(slot).root != kNoRoot) {
        bound_.written_inputs[static_cast<std::size_t>(at(slot).root)] = true;
      }
    });
  }

  void bind_symbol(const Node& node, SymbolFunction symbol, BoundNode& bound, std::string& why) {
    for (const NamedArgument& input : node.inputs) {
      std::string reason;
      auto argument = bind_argument(
          input.argument,
          *c10::NumberType::get(),
          0,
          [this](const std::string& name) { return slot_of(name); },
          reason);
      if (!argument) {
        why = fmt::format("{}: {}", node.target, reason);
        return;
      }
      bound.arguments.push_back(std::move(*argument));
    }
    if (node.outputs.size() != 1) {
      why = fmt::format(
          "{} makes one number, and the file has names for {}", node.target, node.outputs.size());
      return;
    }
    bound.label += fmt::format(", {}", node.target);
    bound.symbol = symbol;
    bound.results.push_back(make_results(node.outputs[0], false, kNoRoot));
    if (bound.results[0].size() != 1) {
      why = fmt::format("{} makes one number, and the file names none", node.target);
    }
  }

  /// Binds a control operator, whose arguments the file lists in this order: settings, the graph,
  /// its inputs.
  void bind_region(const Node& node, BoundNode& bound, std::string& why) {
    const std::string_view control = std::string_view(node.target).substr(kControl.size());
    const auto is_graph = [](const NamedArgument& a) {
      return std::holds_alternative<Subgraph>(a.argument.value);
    };
    const auto first = std::ranges::find_if(node.inputs, is_graph);
    std::vector<const Argument*> settings;
    for (auto i = node.inputs.begin(); i != first; ++i) {
      settings.push_back(&i->argument);
    }
    const auto mode = mode_of(control, settings);
    if (!mode || first == node.inputs.end() ||
        std::count_if(first, node.inputs.end(), is_graph) > 1) {
      why = fmt::format(
          "the control operator {} is not supported, only graphs in no_grad, autocast and "
          "checkpoint "
          "are: decide with tensors (torch.where), and unroll loops",
          control);
      return;
    }
    std::vector<Argument> operands;
    for (auto i = std::next(first); i != node.inputs.end(); ++i) {
      if (const auto* list = std::get_if<List>(&i->argument.value)) {
        operands.insert(operands.end(), list->elements.begin(), list->elements.end());
      } else if (!std::holds_alternative<std::string>(i->argument.value)) {
        operands.push_back(i->argument);  // a string is the name that invoke_subgraph gives
      }
    }
    const Graph& body = *std::get<Subgraph>(first->argument.value).graph;
    if (body.inputs.size() != operands.size()) {
      why = fmt::format("the graph in {} takes {} values, and the file gives it {}",
                        control,
                        body.inputs.size(),
                        operands.size());
      return;
    }
    InputFacts facts;
    for (const Argument& operand : operands) {
      auto argument = bind_argument(
          operand,
          *c10::NumberType::get(),
          0,
          [this](const std::string& name) { return slot_of(name); },
          why);
      if (!argument) {
        return;
      }
      bool dependent = false;
      for_each_slot(*argument, [&](int slot) { dependent = dependent || at(slot).dependent; });
      facts.dependent.push_back(dependent);
      bound.arguments.push_back(std::move(*argument));
    }
    auto region = std::make_shared<ExportedGraph>(body, facts, unsupported_);
    const Bound& inner = *region->bound_;
    take_over(inner, bound.arguments);
    std::vector<const Argument*> outputs;
    flatten(node.outputs, outputs);
    if (outputs.size() > inner.outputs.size()) {
      why = fmt::format("the graph in {} returns {} values, and the file has names for {}",
                        control,
                        inner.outputs.size(),
                        outputs.size());
      return;
    }
    std::vector<int> results;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const auto* name = std::get_if<ValueName>(&outputs[i]->value);
      if (name == nullptr) {
        results.push_back(kNoSlot);
        continue;
      }
      const int of_region = inner.output_roots[i];
      const int slot = of_region == kNoRoot
                           ? kNoSlot
                           : bound.arguments[static_cast<std::size_t>(of_region)].slot;
      results.push_back(
          make(name->name, inner.output_dependent[i], slot == kNoSlot ? kNoRoot : at(slot).root));
    }
    bound.label += fmt::format(", {}", control);
    bound.mode = *mode;
    bound.region = std::move(region);
    bound.results.push_back(std::move(results));
  }

  static std::optional<RegionMode> mode_of(std::string_view control,
                                           const std::vector<const Argument*>& settings) {
    const auto flag = [&](std::size_t i) -> std::optional<bool> {
      const auto* value = i < settings.size() ? std::get_if<bool>(&settings[i]->value) : nullptr;
      return value == nullptr ? std::nullopt : std::optional(*value);
    };
    RegionMode mode;
    if (control == "wrap_with_set_grad_enabled") {
      mode.gradients = flag(0);
      return mode.gradients && settings.size() == 1 ? std::optional(mode) : std::nullopt;
    }
    if (control == "wrap_with_autocast") {
      if (settings.size() != 4 || !flag(2)) {
        return std::nullopt;
      }
      const auto* device = std::get_if<std::string>(&settings[0]->value);
      const auto* dtype = std::get_if<at::ScalarType>(&settings[1]->value);
      if (device != nullptr &&
          *device == c10::DeviceTypeName(kProgramDevice, /*lower_case=*/true)) {
        // Autocast of another device does not affect operators of this one.
        mode.autocast = {{.enabled = *flag(2),
                          .dtype = dtype == nullptr ? std::nullopt : std::optional(*dtype)}};
      }
      return mode;
    }
    const bool plain = control == "wrap" || control == "wrap_activation_checkpoint" ||
                       control == "tag_activation_checkpoint" || control == "invoke_subgraph";
    return plain && settings.empty() ? std::optional(mode) : std::nullopt;
  }

  void take_over(const Bound& inner, const std::vector<BoundArgument>& operands) {
    for (const auto& [name, count] : inner.operators) {
      bound_.operators[name] += count;
    }
    bound_.some_train = bound_.some_train || inner.some_train;
    bound_.some_evaluate = bound_.some_evaluate || inner.some_evaluate;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      if (inner.written_inputs[i]) {
        note_write(operands[i]);
      }
    }
  }

  void bind_output(const Argument& output) {
    if (const auto* list = std::get_if<List>(&output.value)) {
      for (const Argument& element : list->elements) {
        bind_output(element);
      }
      return;
    }
    BoundOutput bound;
    if (const auto* name = std::get_if<ValueName>(&output.value)) {
      bound.slot = slot_of(name->name);
    }
    const bool value = bound.slot != kNoSlot;
    bound_.outputs.push_back(std::move(bound));
    bound_.output_roots.push_back(value ? at(bound_.outputs.back().slot).root : kNoRoot);
    bound_.output_dependent.push_back(value && at(bound_.outputs.back().slot).dependent);
  }

  void find_last_uses() {
    std::vector<bool> used(facts_.size(), false);
    for (const BoundOutput& output : bound_.outputs) {
      if (output.slot != kNoSlot) {
        used[static_cast<std::size_t>(output.slot)] = true;
      }
    }
    for (auto node = bound_.nodes.rbegin(); node != bound_.nodes.rend(); ++node) {
      const auto note = [&](int slot) {
        if (slot != kNoSlot && !used[static_cast<std::size_t>(slot)]) {
          used[static_cast<std::size_t>(slot)] = true;
          node->last_uses.push_back(slot);
        }
      };
      for (const std::vector<int>& list : node->results) {
        std::ranges::for_each(list, note);
      }
      for (const BoundArgument& argument : node->arguments) {
        for_each_slot(argument, note);
      }
    }
  }

  const Graph& graph_;
  std::vector<Unsupported>& unsupported_;
  Bound bound_;
  std::map<std::string, int, std::less<>> names_;
  std::vector<SlotFacts> facts_;
};

ExportedGraph::ExportedGraph(const Graph& graph,
                             const InputFacts& inputs,
                             std::vector<Unsupported>& unsupported)
    : bound_(std::make_unique<Bound>(Binder(graph, unsupported).bind(inputs))) {}

ExportedGraph::~ExportedGraph() = default;
ExportedGraph::ExportedGraph(ExportedGraph&&) noexcept = default;
ExportedGraph& ExportedGraph::operator=(ExportedGraph&&) noexcept = default;

std::vector<c10::IValue> ExportedGraph::run(std::vector<c10::IValue> inputs) const {
  SC_CHECK(inputs.size() == bound_->inputs.size(), "an input per input of the graph");
  std::vector<c10::IValue> slots(bound_->slots);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (bound_->inputs[i] != kNoSlot) {
      slots[static_cast<std::size_t>(bound_->inputs[i])] = std::move(inputs[i]);
    }
  }
  torch::jit::Stack stack;
  for (const BoundNode& node : bound_->nodes) {
    told_of(node, [&] {
      stack.clear();
      for (const BoundArgument& argument : node.arguments) {
        stack.push_back(value_of(argument, slots));
      }
      if (node.op) {
        if (node.check != nullptr) {
          node.check(stack);
        }
        node.op->callBoxed(&stack);
        keep_results(node, stack, slots);
      } else if (node.symbol != nullptr) {
        slots[static_cast<std::size_t>(node.results[0][0])] = node.symbol(stack);
      } else {
        const RegionGuard guard(node.mode);
        const std::vector<c10::IValue> returned = node.region->run(std::move(stack));
        for (std::size_t i = 0; i < node.results[0].size(); ++i) {
          if (const int slot = node.results[0][i]; slot != kNoSlot) {
            slots[static_cast<std::size_t>(slot)] = returned[i];
          }
        }
      }
    });
    for (const int slot : node.last_uses) {
      slots[static_cast<std::size_t>(slot)] = c10::IValue();
    }
  }
  std::vector<c10::IValue> outputs;
  for (const BoundOutput& output : bound_->outputs) {
    outputs.push_back(output.slot == kNoSlot ? output.constant
                                             : slots[static_cast<std::size_t>(output.slot)]);
  }
  return outputs;
}

const std::vector<bool>& ExportedGraph::written_inputs() const {
  return bound_->written_inputs;
}
const std::map<std::string, int>& ExportedGraph::operators() const {
  return bound_->operators;
}
bool ExportedGraph::some_train() const {
  return bound_->some_train;
}
bool ExportedGraph::some_evaluate() const {
  return bound_->some_evaluate;
}

}  // namespace stagecraft::exported
