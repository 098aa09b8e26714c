#include "stagecraft/compiler/graph/graph.h"

#include <algorithm>
#include <sstream>

#include <c10/util/accumulate.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/compiler/graph/custom_function.h"
#include "stagecraft/compiler/graph/driver_code.h"
#include "stagecraft/compiler/graph/tensor_hooks.h"

namespace stagecraft {
namespace {

std::string literal_text(const c10::IValue& value) {
  std::ostringstream out;
  out << value;
  return out.str();
}

std::string operand_text(const Graph& graph, const Operand& operand) {
  struct Visitor {
    const Graph& graph;
    std::string operator()(const c10::IValue& v) const { return literal_text(v); }
    std::string operator()(ValueId v) const { return value_name(graph, v); }
    std::string operator()(const ValueList& list) const {
      std::vector<std::string> names;
      for (const ValueId v : list.values) {
        names.push_back(value_name(graph, v));
      }
      return fmt::format("[{}]", fmt::join(names, ", "));
    }
    std::string operator()(StageDevice) const { return "device"; }
    std::string operator()(StageGenerator) const { return "generator"; }
  };
  return std::visit(Visitor{graph}, operand);
}

std::string hooks_text(const Graph& graph, const Node& node) {
  std::string text;
  for (const ValueId r : node.results) {
    if (r != kNoValue && graph.at(r).hooks != kNoAttachment) {
      text += " " + name_of(graph.attachments[static_cast<std::size_t>(graph.at(r).hooks)]);
    }
  }
  return text;
}

}  // namespace

std::int64_t bytes_of(const Value& value) {
  return c10::multiply_integers(value.sizes) *
         static_cast<std::int64_t>(at::elementSize(value.dtype));
}

std::vector<ValueId> reads_of(const Node& node) {
  std::vector<ValueId> reads;
  for (const Operand& operand : node.operands) {
    if (const auto* value = std::get_if<ValueId>(&operand)) {
      reads.push_back(*value);
    } else if (const auto* list = std::get_if<ValueList>(&operand)) {
      for (const ValueId v : list->values) {
        if (v != kNoValue) {
          reads.push_back(v);
        }
      }
    }
  }
  return reads;
}

std::string operator_name(const Node& node) {
  return node.overload.empty() ? node.name : node.name + "." + node.overload;
}

std::vector<std::string> operator_names(const Graph& graph) {
  std::vector<std::string> names;
  names.reserve(graph.nodes.size());
  for (const Node& node : graph.nodes) {
    names.push_back(operator_name(node));
  }
  return names;
}

std::string stage_marker(const Node& node) {
  for (const Annotation& a : node.annotations) {
    if (a.tag == kStageTag) {
      return a.name;
    }
  }
  return "";
}

const std::string& name_of(const Attachment& attachment) {
  return std::visit([](const auto& code) -> const std::string& { return code->name(); },
                    attachment);
}

bool in_loss(const Node& node) {
  return std::ranges::any_of(node.annotations,
                             [](const Annotation& a) { return a.tag == kLossTag; });
}

bool is_driver_code(const Node& node) {
  return node.name == kDriverOperator;
}

std::string value_name(const Value& value, ValueId id) {
  switch (value.kind) {
    case ValueKind::Input:
      return fmt::format("input{}", value.position);
    case ValueKind::Label:
      return fmt::format("label{}", value.position);
    case ValueKind::Constant:
      return fmt::format("const{}", value.position);
    case ValueKind::Parameter:
    case ValueKind::Buffer:
    case ValueKind::Computed:
      break;
  }
  return fmt::format("%{}", id.value);
}

std::string value_name(const Graph& graph, ValueId id) {
  if (id == kNoValue) {
    return "none";
  }
  const Value& value = graph.at(id);
  switch (value.kind) {
    case ValueKind::Parameter:
      return "w:" + graph.parameters[static_cast<std::size_t>(value.position)].name;
    case ValueKind::Buffer:
      return "b:" + graph.buffers[static_cast<std::size_t>(value.position)].name;
    default:
      return value_name(value, id);
  }
}

const std::vector<ValueId>& results_of(const Graph& evaluation) {
  return evaluation.loss == kNoValue ? evaluation.outputs : evaluation.metrics;
}

std::string to_string(const Graph& graph) {
  std::string text;
  for (const Node& node : graph.nodes) {
    std::vector<std::string> results;
    for (const ValueId r : node.results) {
      results.push_back(r == kNoValue ? "none"
                                      : fmt::format("{}: {}[{}]",
                                                    value_name(graph, r),
                                                    at::toString(graph.at(r).dtype),
                                                    fmt::join(graph.at(r).sizes, ", ")));
    }
    std::vector<std::string> operands;
    for (const Operand& operand : node.operands) {
      operands.push_back(operand_text(graph, operand));
    }
    const std::string stage = stage_marker(node);
    text += fmt::format("{:<10} {} = {}({}){}{}{}\n",
                        !stage.empty()  ? stage
                        : in_loss(node) ? std::string(kLossTag)
                                        : "-",
                        node.answer ? (*node.answer ? "true" : "false")
                                    : fmt::format("{}", fmt::join(results, ", ")),
                        node.function < 0
                            ? operator_name(node)
                            : name_of(graph.attachments[static_cast<std::size_t>(node.function)]),
                        fmt::join(operands, ", "),
                        hooks_text(graph, node),
                        node.grad_mode ? "" : " no_grad",
                        node.random_index >= 0 ? fmt::format(" random{}", node.random_index) : "");
  }
  std::vector<std::string> outputs;
  for (const ValueId v : graph.outputs) {
    outputs.push_back(value_name(graph, v));
  }
  text +=
      fmt::format("return {}; loss {}\n", fmt::join(outputs, ", "), value_name(graph, graph.loss));
  return text;
}

}  // namespace stagecraft
