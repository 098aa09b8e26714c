#include "stagecraft/compiler/import/exported/exported_call.h"

#include <algorithm>
#include <utility>

#include <ATen/core/List.h>
#include <ATen/core/jit_type.h>
#include <ATen/ops/scalar_tensor.h>
#include <fmt/format.h>

#include "stagecraft/base/check.h"
#include "stagecraft/compiler/libtorch/allowed_operators.h"
#include "stagecraft/compiler/libtorch/program_device.h"

namespace stagecraft::exported {
namespace {

using Bound = std::optional<BoundArgument>;

BoundArgument constant(c10::IValue value) {
  BoundArgument bound;
  bound.constant = std::move(value);
  return bound;
}

/// Returns a tensor that promotes types as a number does, as in Python's `x * 2`.
at::Tensor wrapped_number(const at::Scalar& number) {
  const at::ScalarType dtype = number.isFloatingPoint() ? at::kDouble
                               : number.isComplex()     ? at::kComplexDouble
                               : number.isBoolean()     ? at::kBool
                                                        : at::kLong;
  at::Tensor tensor = at::scalar_tensor(number, at::TensorOptions().dtype(dtype));
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

/// Returns the argument as a number of any kind.
std::optional<c10::IValue> number_of(const Argument& argument) {
  if (const auto* i = std::get_if<std::int64_t>(&argument.value)) {
    return *i;
  }
  if (const auto* d = std::get_if<double>(&argument.value)) {
    return *d;
  }
  if (const auto* b = std::get_if<bool>(&argument.value)) {
    return *b;
  }
  if (const auto* c = std::get_if<std::complex<double>>(&argument.value)) {
    return c10::complex<double>(*c);
  }
  return std::nullopt;
}

/// Returns the argument as an int of the dispatcher: a number, or one of its enumerations.
std::optional<std::int64_t> int_of(const Argument& argument) {
  if (const auto* i = std::get_if<std::int64_t>(&argument.value)) {
    return *i;
  }
  if (const auto* b = std::get_if<bool>(&argument.value)) {
    return *b ? 1 : 0;
  }
  if (const auto* d = std::get_if<at::ScalarType>(&argument.value)) {
    return static_cast<std::int64_t>(*d);
  }
  if (const auto* l = std::get_if<at::Layout>(&argument.value)) {
    return static_cast<std::int64_t>(*l);
  }
  if (const auto* m = std::get_if<at::MemoryFormat>(&argument.value)) {
    return static_cast<std::int64_t>(*m);
  }
  return std::nullopt;
}

/// Returns the program's device for every device on which a file is exported: the model runs on the
/// device of its stage.
std::optional<c10::Device> device_of(const Device& device, std::string& why) {
  if (device.type == "cpu" || device.type == "cuda") {
    return c10::Device(kProgramDevice);
  }
  why =
      fmt::format("it names the device {}; a stage runs on the device of its worker", device.type);
  return std::nullopt;
}

std::optional<c10::IValue> constant_of(const Argument& argument,
                                       const c10::Type& type,
                                       std::string& why) {
  const auto number = number_of(argument);
  switch (type.kind()) {
    case c10::TypeKind::TensorType:
      if (number) {
        return wrapped_number(number->toScalar());
      }
      break;
    case c10::TypeKind::NumberType:
      if (number) {
        return number;
      }
      if (const auto i = int_of(argument)) {
        return *i;
      }
      break;
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
    case c10::TypeKind::ScalarTypeType:
    case c10::TypeKind::LayoutType:
    case c10::TypeKind::MemoryFormatType:
      if (const auto i = int_of(argument)) {
        return *i;
      }
      break;
    case c10::TypeKind::FloatType:
      if (number && !number->isComplexDouble()) {
        return number->toScalar().toDouble();
      }
      break;
    case c10::TypeKind::BoolType:
      if (const auto* b = std::get_if<bool>(&argument.value)) {
        return *b;
      }
      break;
    case c10::TypeKind::ComplexType:
      if (number) {
        return number->toScalar().toComplexDouble();
      }
      break;
    case c10::TypeKind::StringType:
      if (const auto* s = std::get_if<std::string>(&argument.value)) {
        return *s;
      }
      break;
    case c10::TypeKind::DeviceObjType:
      if (const auto* d = std::get_if<Device>(&argument.value)) {
        if (const auto device = device_of(*d, why)) {
          return *device;
        }
      }
      break;
    default:
      break;
  }
  if (const auto* foreign = std::get_if<Foreign>(&argument.value)) {
    why = foreign->what;
  } else if (why.empty()) {
    why = fmt::format("expected {}, found {}", type.repr_str(), argument.kind);
  }
  return std::nullopt;
}

std::optional<BoundArgument::Elements> elements_of(const c10::Type& type) {
  using Elements = BoundArgument::Elements;
  switch (type.kind()) {
    case c10::TypeKind::TensorType:
      return Elements::Tensors;
    case c10::TypeKind::OptionalType:
      return Elements::OptionalTensors;
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
      return Elements::Ints;
    case c10::TypeKind::FloatType:
      return Elements::Floats;
    case c10::TypeKind::BoolType:
      return Elements::Bools;
    default:
      return std::nullopt;
  }
}

c10::IValue typed_list(BoundArgument::Elements elements,
                       const std::vector<BoundArgument>& list,
                       const std::vector<c10::IValue>& slots) {
  using Elements = BoundArgument::Elements;
  const auto make = [&]<class T>(c10::List<T> typed, auto&& convert) {
    typed.reserve(list.size());
    for (const BoundArgument& element : list) {
      typed.push_back(convert(value_of(element, slots)));
    }
    return c10::IValue(std::move(typed));
  };
  switch (elements) {
    case Elements::Tensors:
      return make(c10::List<at::Tensor>(), [](const c10::IValue& v) { return v.toTensor(); });
    case Elements::OptionalTensors:
      return make(c10::List<std::optional<at::Tensor>>(), [](const c10::IValue& v) {
        return v.isNone() ? std::nullopt : std::optional<at::Tensor>(v.toTensor());
      });
    case Elements::Ints:
      return make(c10::List<std::int64_t>(), [](const c10::IValue& v) { return v.toInt(); });
    case Elements::Floats:
      return make(c10::List<double>(),
                  [](const c10::IValue& v) { return v.toScalar().toDouble(); });
    case Elements::Bools:
      return make(c10::List<bool>(), [](const c10::IValue& v) { return v.toBool(); });
  }
  SC_CHECK(false, "no such kind of list");
  return {};
}

/// Makes a list of numbers or strings, all of which are constants.
std::optional<c10::IValue> other_list(const List& list,
                                      const c10::Type& element,
                                      std::string& why) {
  const auto make = [&]<class T>(c10::List<T> typed, auto&& convert) -> std::optional<c10::IValue> {
    for (const Argument& a : list.elements) {
      const auto value = constant_of(a, element, why);
      if (!value) {
        return std::nullopt;
      }
      typed.push_back(convert(*value));
    }
    return typed;
  };
  if (element.kind() == c10::TypeKind::StringType) {
    return make(c10::List<std::string>(), [](const c10::IValue& v) { return v.toStringRef(); });
  }
  if (element.kind() == c10::TypeKind::NumberType) {
    return make(c10::List<at::Scalar>(), [](const c10::IValue& v) { return v.toScalar(); });
  }
  why = fmt::format("it takes a list of {}, which cannot be read from a file", element.repr_str());
  return std::nullopt;
}

Bound bind_list(const Argument& argument,
                const c10::Type& element,
                int count,
                const SlotOf& slot_of,
                std::string& why) {
  List single;
  const auto* list = std::get_if<List>(&argument.value);
  if (list == nullptr) {
    if (count == 0 || (!int_of(argument) && !number_of(argument))) {
      why = fmt::format("expected a list of {}, found {}", element.repr_str(), argument.kind);
      return std::nullopt;
    }
    single.elements.assign(static_cast<std::size_t>(count), argument);
    list = &single;
  }
  const auto elements = elements_of(element);
  if (!elements) {
    auto made = other_list(*list, element, why);
    return made ? Bound(constant(std::move(*made))) : std::nullopt;
  }
  BoundArgument bound{.is_list = true, .elements = *elements};
  bool fixed = true;
  for (const Argument& a : list->elements) {
    auto one = bind_argument(a, element, 0, slot_of, why);
    if (!one) {
      return std::nullopt;
    }
    fixed = fixed && one->slot < 0;
    bound.list.push_back(std::move(*one));
  }
  return fixed ? constant(typed_list(*elements, bound.list, {})) : bound;
}

/// Returns why an operator may not get this value for an argument of that type; empty if it may.
std::string enumeration_fault(const BoundArgument& bound, const c10::Type& real_type) {
  if (!is_enumeration(real_type)) {
    return {};
  }
  if (bound.slot >= 0) {
    return "expected a constant, found a value of the graph";
  }
  if (bound.constant.isInt() && !may_be_number(real_type, bound.constant.toInt())) {
    return fmt::format("expected a {} of a dense tensor, found the number {}",
                       real_type.repr_str(),
                       bound.constant.toInt());
  }
  return {};
}

bool takes_values(const c10::Type& type) {
  switch (type.kind()) {
    case c10::TypeKind::TensorType:
    case c10::TypeKind::NumberType:
    case c10::TypeKind::IntType:
    case c10::TypeKind::SymIntType:
    case c10::TypeKind::FloatType:
    case c10::TypeKind::BoolType:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::optional<BoundArgument> bind_argument(const Argument& argument,
                                           const c10::Type& type,
                                           int count,
                                           const SlotOf& slot_of,
                                           std::string& why) {
  if (type.kind() == c10::TypeKind::OptionalType) {
    if (std::holds_alternative<None>(argument.value)) {
      return BoundArgument{};
    }
    return bind_argument(
        argument, *type.castRaw<c10::OptionalType>()->getElementType(), count, slot_of, why);
  }
  if (type.kind() == c10::TypeKind::ListType) {
    return bind_list(
        argument, *type.castRaw<c10::ListType>()->getElementType(), count, slot_of, why);
  }
  if (const auto* name = std::get_if<ValueName>(&argument.value)) {
    if (!takes_values(type)) {
      why = fmt::format("expected {}, found the value {}", type.repr_str(), name->name);
      return std::nullopt;
    }
    BoundArgument bound;
    bound.slot = slot_of(name->name);
    bound.wanted = type.kind() == c10::TypeKind::TensorType  ? BoundArgument::Wanted::Tensor
                   : type.kind() == c10::TypeKind::FloatType ? BoundArgument::Wanted::Float
                                                             : BoundArgument::Wanted::Anything;
    return bound;
  }
  auto value = constant_of(argument, type, why);
  return value ? Bound(constant(std::move(*value))) : std::nullopt;
}

c10::IValue value_of(const BoundArgument& argument, const std::vector<c10::IValue>& slots) {
  if (argument.is_list) {
    return typed_list(argument.elements, argument.list, slots);
  }
  if (argument.slot < 0) {
    return argument.constant;
  }
  const c10::IValue& value = slots[static_cast<std::size_t>(argument.slot)];
  const bool number = value.isScalar();
  if (number && argument.wanted == BoundArgument::Wanted::Tensor) {
    return wrapped_number(value.toScalar());
  }
  if (number && argument.wanted == BoundArgument::Wanted::Float) {
    return value.toScalar().toDouble();
  }
  return value;
}

void for_each_slot(const BoundArgument& argument, const std::function<void(int)>& visit) {
  if (argument.slot >= 0) {
    visit(argument.slot);
  }
  for (const BoundArgument& element : argument.list) {
    for_each_slot(element, visit);
  }
}

std::optional<c10::OperatorName> operator_name_of(std::string_view target) {
  constexpr std::string_view kPrefix = "torch.ops.";
  if (!target.starts_with(kPrefix)) {
    return std::nullopt;
  }
  target.remove_prefix(kPrefix.size());
  const std::size_t first = target.find('.');
  const std::size_t last = target.rfind('.');
  if (first == std::string_view::npos || last == first) {
    return std::nullopt;
  }
  const std::string_view overload = target.substr(last + 1);
  return c10::OperatorName(
      fmt::format("{}::{}", target.substr(0, first), target.substr(first + 1, last - first - 1)),
      overload == "default" ? "" : std::string(overload));
}

std::optional<ExportedCall> bind_call(const Node& node, const SlotOf& slot_of, std::string& why) {
  const auto name = operator_name_of(node.target);
  if (!name) {
    why = fmt::format("{} is no operator of LibTorch", node.target);
    return std::nullopt;
  }
  const auto op = c10::Dispatcher::singleton().findSchema(*name);
  if (!op) {
    why = fmt::format("the operator {} is not known to this LibTorch", c10::toString(*name));
    return std::nullopt;
  }
  if (auto refusal = operator_refusal(*name, ProgramOrigin::ModelFile)) {
    why = std::move(*refusal);
    return std::nullopt;
  }
  const auto& declared = op->schema().arguments();
  ExportedCall call{*op, {}};
  std::vector<const Argument*> given(declared.size(), nullptr);
  for (const NamedArgument& input : node.inputs) {
    const auto found = std::ranges::find_if(
        declared, [&](const c10::Argument& a) { return a.name() == input.name; });
    if (found == declared.end()) {
      why = fmt::format(
          "{} has no argument \"{}\" in this LibTorch", c10::toString(*name), input.name);
      return std::nullopt;
    }
    given[static_cast<std::size_t>(found - declared.begin())] = &input.argument;
  }
  for (std::size_t i = 0; i < declared.size(); ++i) {
    if (given[i] == nullptr) {
      if (!declared[i].default_value() &&
          declared[i].type()->kind() != c10::TypeKind::OptionalType) {
        why = fmt::format("{} needs the argument \"{}\", which the file does not have",
                          c10::toString(*name),
                          declared[i].name());
        return std::nullopt;
      }
      call.arguments.push_back(constant(declared[i].default_value().value_or(c10::IValue())));
      continue;
    }
    std::string reason;
    auto bound =
        bind_argument(*given[i], *declared[i].type(), declared[i].N().value_or(0), slot_of, reason);
    if (bound) {
      reason = enumeration_fault(*bound, *declared[i].real_type());
    }
    if (!bound || !reason.empty()) {
      why = fmt::format(
          "the argument \"{}\" of {}: {}", declared[i].name(), c10::toString(*name), reason);
      return std::nullopt;
    }
    call.arguments.push_back(std::move(*bound));
  }
  return call;
}

}  // namespace stagecraft::exported
