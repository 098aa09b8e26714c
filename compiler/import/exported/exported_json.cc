#include "stagecraft/compiler/import/exported/exported_json.h"

#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/import/archive/json_place.h"

namespace stagecraft::exported {
namespace {

constexpr int kDeepestGraph = 32;

nlohmann::json parsed(std::string_view text) {
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception& e) {
    throw Error(Errc::UsageFile, fmt::format("this is no JSON: {}", e.what()));
  }
}

at::ScalarType scalar_type(const JsonPlace& place) {
  switch (place.integer()) {
    case 1:
      return at::kByte;
    case 2:
      return at::kChar;
    case 3:
      return at::kShort;
    case 4:
      return at::kInt;
    case 5:
      return at::kLong;
    case 6:
      return at::kHalf;
    case 7:
      return at::kFloat;
    case 8:
      return at::kDouble;
    case 9:
      return at::kComplexHalf;
    case 10:
      return at::kComplexFloat;
    case 11:
      return at::kComplexDouble;
    case 12:
      return at::kBool;
    case 13:
      return at::kBFloat16;
    case 28:
      return at::kUInt16;
    case 29:
      return at::kFloat8_e4m3fn;
    case 30:
      return at::kFloat8_e5m2;
    case 31:
      return at::kFloat8_e4m3fnuz;
    case 32:
      return at::kFloat8_e5m2fnuz;
    default:
      place.refuse(
          fmt::format("expected the number of a dtype, found {}; schema {} knows 1 to 13 and 28 to "
                      "32",
                      place.integer(),
                      kSchemaMajor));
  }
}

at::Layout layout(const JsonPlace& place) {
  constexpr std::array kLayouts{at::kSparse,
                                at::kSparseCsr,
                                at::kSparseCsc,
                                at::kSparseBsr,
                                at::kSparseBsc,
                                at::kMkldnn,
                                at::kStrided};
  const std::int64_t number = place.integer();
  if (number < 1 || number > static_cast<std::int64_t>(kLayouts.size())) {
    place.refuse(fmt::format("expected the number of a layout, 1 to 7, found {}", number));
  }
  return kLayouts[static_cast<std::size_t>(number - 1)];
}

at::MemoryFormat memory_format(const JsonPlace& place) {
  constexpr std::array kFormats{at::MemoryFormat::Contiguous,
                                at::MemoryFormat::ChannelsLast,
                                at::MemoryFormat::ChannelsLast3d,
                                at::MemoryFormat::Preserve};
  const std::int64_t number = place.integer();
  if (number < 1 || number > static_cast<std::int64_t>(kFormats.size())) {
    place.refuse(fmt::format("expected the number of a memory format, 1 to 4, found {}", number));
  }
  return kFormats[static_cast<std::size_t>(number - 1)];
}

/// Reads a size, stride or offset; returns kUnknownSize for an expression.
std::int64_t symbolic_int(const JsonPlace& place) {
  std::int64_t value = kUnknownSize;
  place.alternative([&](std::string_view key, const JsonPlace& p) {
    if (key == "as_int") {
      value = p.integer();
      if (value < 0) {
        p.refuse(fmt::format("expected a size of 0 or more, found {}", value));
      }
    } else if (key != "as_expr") {
      place.refuse(fmt::format("expected as_int or as_expr, found {}", key));
    }
  });
  return value;
}

std::vector<std::int64_t> symbolic_ints(const JsonPlace& place) {
  std::vector<std::int64_t> values;
  place.each([&](const JsonPlace& p) { values.push_back(symbolic_int(p)); });
  return values;
}

TensorFacts tensor_facts(const JsonPlace& place) {
  TensorFacts facts;
  facts.dtype = scalar_type(place.at("dtype"));
  facts.sizes = symbolic_ints(place.at("sizes"));
  facts.strides = symbolic_ints(place.at("strides"));
  facts.storage_offset = symbolic_int(place.at("storage_offset"));
  facts.requires_grad = place.at("requires_grad").boolean();
  facts.strided = layout(place.at("layout")) == at::kStrided;
  return facts;
}

/// Returns the expression of a symbolic number, or the number if it is known.
std::string expression(const JsonPlace& place) {
  std::string text;
  place.alternative([&](std::string_view key, const JsonPlace& p) {
    if (key == "as_expr") {
      text = p.at("expr_str").string();
    } else if (key == "as_int") {
      text = std::to_string(p.integer());
    } else if (key == "as_bool") {
      text = p.boolean() ? "True" : "False";
    } else {
      text = std::to_string(p.number());
    }
  });
  return text;
}

Argument argument(const JsonPlace& place, int depth);
Graph graph(const JsonPlace& place, int depth);

template <class Element>
List list(const JsonPlace& place, std::string_view kind, Element&& element) {
  List result;
  place.each([&](const JsonPlace& p) {
    result.elements.push_back({std::string(kind), element(p)});
  });
  return result;
}

using Variant = decltype(Argument::value);

Variant value_name(const JsonPlace& place) {
  return ValueName{place.at("name").string()};
}
Variant integer(const JsonPlace& place) {
  return place.integer();
}
Variant number(const JsonPlace& place) {
  return place.number();
}
Variant boolean(const JsonPlace& place) {
  return place.boolean();
}
Variant string(const JsonPlace& place) {
  return place.string();
}

/// Reads a number or the name of one.
Variant symbolic(const JsonPlace& place) {
  Variant value;
  place.alternative([&](std::string_view key, const JsonPlace& p) {
    if (key == "as_name") {
      value = ValueName{p.string()};
    } else if (key == "as_int") {
      value = p.integer();
    } else if (key == "as_float") {
      value = p.number();
    } else if (key == "as_bool") {
      value = p.boolean();
    } else {
      place.refuse(fmt::format("expected as_name, as_int, as_float or as_bool, found {}", key));
    }
  });
  return value;
}

Variant optional_tensor(const JsonPlace& place) {
  Variant value = None{};
  place.alternative([&](std::string_view key, const JsonPlace& p) {
    if (key == "as_tensor") {
      value = value_name(p);
    } else if (key != "as_none") {
      place.refuse(fmt::format("expected as_tensor or as_none, found {}", key));
    }
  });
  return value;
}

Variant value_of_kind(std::string_view kind, const JsonPlace& p, int depth) {
  if (kind == "as_none") {
    return None{};
  }
  if (kind == "as_tensor") {
    return value_name(p);
  }
  if (kind == "as_tensors") {
    return list(p, "as_tensor", value_name);
  }
  if (kind == "as_optional_tensor") {
    return optional_tensor(p);
  }
  if (kind == "as_optional_tensors") {
    return list(p, "as_optional_tensor", optional_tensor);
  }
  if (kind == "as_nested_tensors") {
    return list(p, "as_tensors", [](const JsonPlace& inner) -> Variant {
      return list(inner, "as_tensor", value_name);
    });
  }
  if (kind == "as_int") {
    return integer(p);
  }
  if (kind == "as_ints") {
    return list(p, "as_int", integer);
  }
  if (kind == "as_int_lists") {
    return list(p, "as_ints", [](const JsonPlace& inner) -> Variant {
      return list(inner, "as_int", integer);
    });
  }
  if (kind == "as_float") {
    return number(p);
  }
  if (kind == "as_floats") {
    return list(p, "as_float", number);
  }
  if (kind == "as_bool") {
    return boolean(p);
  }
  if (kind == "as_bools") {
    return list(p, "as_bool", boolean);
  }
  if (kind == "as_string") {
    return string(p);
  }
  if (kind == "as_strings") {
    return list(p, "as_string", string);
  }
  if (kind == "as_sym_int" || kind == "as_sym_float" || kind == "as_sym_bool") {
    return symbolic(p);
  }
  if (kind == "as_sym_ints" || kind == "as_sym_floats" || kind == "as_sym_bools") {
    return list(p, kind.substr(0, kind.size() - 1), symbolic);
  }
  if (kind == "as_complex") {
    return std::complex<double>(p.at("real").number(), p.at("imag").number());
  }
  if (kind == "as_scalar_type") {
    return scalar_type(p);
  }
  if (kind == "as_layout") {
    return layout(p);
  }
  if (kind == "as_memory_format") {
    return memory_format(p);
  }
  if (kind == "as_device") {
    return Device{p.at("type").string()};
  }
  if (kind == "as_graph") {
    return Subgraph{p.at("name").string(),
                    std::make_shared<const Graph>(graph(p.at("graph"), depth + 1))};
  }
  if (kind == "as_custom_obj") {
    return Foreign{fmt::format("an object of class {}", p.at("class_fqn").string())};
  }
  if (kind == "as_operator") {
    return Foreign{fmt::format("the operator {} as an argument", p.string())};
  }
  return Foreign{fmt::format("an argument of kind {}", kind)};
}

Argument argument(const JsonPlace& place, int depth) {
  Argument result;
  place.alternative([&](std::string_view kind, const JsonPlace& p) {
    result = {std::string(kind), value_of_kind(kind, p, depth)};
  });
  return result;
}

std::vector<Argument> arguments(const JsonPlace& place, int depth) {
  std::vector<Argument> result;
  place.each([&](const JsonPlace& p) { result.push_back(argument(p, depth)); });
  return result;
}

/// Returns "layers.0.attention" for "L__self__,,Model;L__self___layers_0,layers.0,Layer;..."
std::string innermost_module(std::string_view stack) {
  const std::size_t last = stack.rfind(';');
  if (last != std::string_view::npos) {
    stack.remove_prefix(last + 1);
  }
  const std::size_t begin = stack.find(',');
  if (begin == std::string_view::npos) {
    return {};
  }
  stack.remove_prefix(begin + 1);
  return std::string(stack.substr(0, stack.find(',')));
}

Node node(const JsonPlace& place, int depth) {
  Node result;
  result.target = place.at("target").string();
  if (const auto name = place.find("name")) {
    result.name = name->string();
  }
  if (const auto metadata = place.find("metadata")) {
    if (const auto stack = metadata->find("nn_module_stack")) {
      result.path = innermost_module(stack->string());
    }
  }
  place.at("inputs").each([&](const JsonPlace& p) {
    result.inputs.push_back({p.at("name").string(), argument(p.at("arg"), depth)});
  });
  result.outputs = arguments(place.at("outputs"), depth);
  return result;
}

Graph graph(const JsonPlace& place, int depth) {
  if (depth > kDeepestGraph) {
    place.refuse(fmt::format("graphs are nested more than {} deep", kDeepestGraph));
  }
  Graph result;
  result.inputs = arguments(place.at("inputs"), depth);
  result.outputs = arguments(place.at("outputs"), depth);
  place.at("nodes").each([&](const JsonPlace& p) { result.nodes.push_back(node(p, depth)); });
  place.at("tensor_values").members([&](const std::string& name, const JsonPlace& p) {
    result.tensors.emplace(name, tensor_facts(p));
  });
  for (const std::string_view key : {"sym_int_values", "sym_float_values", "sym_bool_values"}) {
    if (const auto values = place.find(key)) {
      values->members([&](const std::string& name, const JsonPlace& p) {
        result.symbols.emplace(name, expression(p));
      });
    }
  }
  return result;
}

InputSpec input_spec(const JsonPlace& place) {
  InputSpec spec;
  place.alternative([&](std::string_view kind, const JsonPlace& p) {
    if (kind == "user_input") {
      spec.kind = InputKind::User;
    } else if (kind == "parameter") {
      spec = {InputKind::Parameter, p.at("parameter_name").string()};
    } else if (kind == "buffer") {
      spec = {InputKind::Buffer, p.at("buffer_name").string(), p.at("persistent").boolean()};
    } else if (kind == "tensor_constant") {
      spec = {InputKind::Constant, p.at("tensor_constant_name").string()};
    } else if (kind == "constant_input") {
      spec = {InputKind::Baked, p.at("name").string()};
    } else if (kind == "custom_obj") {
      spec = {InputKind::Refused, fmt::format("the object {}", p.at("custom_obj_name").string())};
    } else {
      spec = {InputKind::Refused, fmt::format("an input of kind {}", kind)};
    }
  });
  return spec;
}

OutputSpec output_spec(const JsonPlace& place) {
  OutputSpec spec;
  place.alternative([&](std::string_view kind, const JsonPlace& p) {
    if (kind == "user_output") {
      spec.kind = OutputKind::User;
    } else if (kind == "loss_output") {
      spec.kind = OutputKind::Loss;
    } else if (kind == "buffer_mutation") {
      spec = {OutputKind::BufferWrite, p.at("buffer_name").string()};
    } else if (kind == "user_input_mutation") {
      spec = {OutputKind::InputWrite, p.at("user_input_name").string()};
    } else if (kind == "parameter_mutation") {
      spec = {OutputKind::Refused,
              fmt::format("the model writes the parameter {}; only the optimizer may",
                          p.at("parameter_name").string())};
    } else {
      spec = {OutputKind::Refused,
              fmt::format("an output of kind {}; export the forward alone", kind)};
    }
  });
  return spec;
}

/// Called first, since another version may have changed everything else.
void check_version(const JsonPlace& top) {
  const JsonPlace version = top.at("schema_version");
  const std::int64_t major = version.at("major").integer();
  const std::int64_t minor = version.at("minor").integer();
  if (major != kSchemaMajor) {
    std::string wrote;
    if (const auto torch = top.find("torch_version")) {
      wrote = fmt::format(" (written by torch {})", torch->string());
    }
    version.refuse(
        fmt::format("expected schema version {}.x, found {}.{}{}; export the model again with "
                    "torch 2.11",
                    kSchemaMajor,
                    major,
                    minor,
                    wrote));
  }
}

}  // namespace

Program read_program(std::string_view json) {
  const nlohmann::json tree = parsed(json);
  const JsonPlace top(tree);
  check_version(top);
  const JsonPlace graph_module = top.at("graph_module");
  const JsonPlace signature = graph_module.at("signature");
  Program program;
  if (const auto torch = top.find("torch_version")) {
    program.torch_version = torch->string();
  }
  if (const auto verifiers = top.find("verifiers")) {
    verifiers->each([&](const JsonPlace& p) { program.dialect = p.string(); });
  }
  program.graph = graph(graph_module.at("graph"), 0);
  const JsonPlace inputs = signature.at("input_specs");
  inputs.each([&](const JsonPlace& p) { program.inputs.push_back(input_spec(p)); });
  const JsonPlace outputs = signature.at("output_specs");
  outputs.each([&](const JsonPlace& p) { program.outputs.push_back(output_spec(p)); });
  if (program.inputs.size() != program.graph.inputs.size()) {
    inputs.refuse(fmt::format("expected one for each of the graph's {} inputs, found {}",
                              program.graph.inputs.size(),
                              program.inputs.size()));
  }
  if (program.outputs.size() != program.graph.outputs.size()) {
    outputs.refuse(fmt::format("expected one for each of the graph's {} outputs, found {}",
                               program.graph.outputs.size(),
                               program.outputs.size()));
  }
  return program;
}

Payloads read_payloads(std::string_view json) {
  const nlohmann::json tree = parsed(json);
  const JsonPlace top(tree);
  const JsonPlace config = top.at("config");
  Payloads payloads;
  config.members([&](const std::string& fqn, const JsonPlace& p) {
    Payload payload;
    payload.record = p.at("path_name").string();
    payload.is_parameter = p.at("is_param").boolean();
    payload.pickled = p.at("use_pickle").boolean();
    if (!payload.pickled) {
      payload.facts = tensor_facts(p.at("tensor_meta"));
    }
    payloads.emplace(fqn, std::move(payload));
  });
  return payloads;
}

}  // namespace stagecraft::exported
