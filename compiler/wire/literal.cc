#include "stagecraft/compiler/wire/literal.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include <ATen/core/List.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/jit_type.h>
#include <c10/util/complex.h>
#include <fmt/format.h>

#include "stagecraft/base/check.h"

namespace stagecraft::wire {
namespace {

/// The numbers are part of the format: add new kinds at the end.
enum class Kind : std::uint8_t {
  None,
  NoTensor,
  Bool,
  Int,
  Double,
  Complex,
  Text,
  Bools,
  Ints,
  Doubles,
  Complexes,
  Texts,
  Scalars,
  NoTensors,  ///< a list of optional tensors, none of which is there
};

std::optional<Kind> kind_of_list(const c10::IValue& list) {
  if (list.isBoolList()) {
    return Kind::Bools;
  }
  if (list.isIntList()) {
    return Kind::Ints;
  }
  if (list.isDoubleList()) {
    return Kind::Doubles;
  }
  if (list.isComplexDoubleList()) {
    return Kind::Complexes;
  }
  const c10::TypePtr type = list.toList().elementType();
  if (type->kind() == c10::TypeKind::StringType) {
    return Kind::Texts;
  }
  const auto elements = list.toListRef();
  if (type->kind() == c10::TypeKind::NumberType &&
      std::ranges::all_of(elements, [](const c10::IValue& e) { return e.isScalar(); })) {
    return Kind::Scalars;
  }
  if (*type == *c10::OptionalType::ofTensor() &&
      std::ranges::all_of(elements, [](const c10::IValue& e) { return e.isNone(); })) {
    return Kind::NoTensors;
  }
  return std::nullopt;
}

std::optional<Kind> kind_of(const c10::IValue& literal) {
  if (literal.isNone()) {
    return Kind::None;
  }
  if (literal.isTensor()) {
    return literal.toTensor().defined() ? std::nullopt : std::optional(Kind::NoTensor);
  }
  if (literal.isBool()) {
    return Kind::Bool;
  }
  if (literal.isInt()) {
    return Kind::Int;
  }
  if (literal.isDouble()) {
    return Kind::Double;
  }
  if (literal.isComplexDouble()) {
    return Kind::Complex;
  }
  if (literal.isString()) {
    return Kind::Text;
  }
  return literal.isList() ? kind_of_list(literal) : std::nullopt;
}

void put_complex(Writer& out, const c10::complex<double>& value) {
  out.array(2);
  out.number(value.real());
  out.number(value.imag());
}

c10::complex<double> get_complex(Reader& in) {
  in.array_of(2, "a complex number");
  const double real = in.number();
  return {real, in.number()};
}

void put_element(Writer& out, Kind kind, const c10::IValue& element) {
  switch (kind) {
    case Kind::Bools:
      return out.boolean(element.toBool());
    case Kind::Ints:
      return out.integer(element.toInt());
    case Kind::Doubles:
      return out.number(element.toDouble());
    case Kind::Complexes:
      return put_complex(out, element.toComplexDouble());
    case Kind::Texts:
      return out.text(element.toStringRef());
    case Kind::Scalars:
      return put_literal(out, element);
    default:
      return out.nil();
  }
}

c10::IValue get_element(Reader& in, Kind kind) {
  switch (kind) {
    case Kind::Bools:
      return in.boolean();
    case Kind::Ints:
      return in.integer();
    case Kind::Doubles:
      return in.number();
    case Kind::Complexes:
      return get_complex(in);
    case Kind::Texts:
      return std::string(in.text());
    case Kind::Scalars: {
      c10::IValue scalar = get_literal(in);
      if (!scalar.isScalar()) {
        in.refuse("a list of scalars has another element");
      }
      return scalar;
    }
    default:
      if (!in.take_nil()) {
        in.refuse("a list of absent tensors has another element");
      }
      return {};
  }
}

c10::TypePtr type_of_elements(Kind kind) {
  switch (kind) {
    case Kind::Bools:
      return c10::BoolType::get();
    case Kind::Ints:
      return c10::IntType::get();
    case Kind::Doubles:
      return c10::FloatType::get();
    case Kind::Complexes:
      return c10::ComplexType::get();
    case Kind::Texts:
      return c10::StringType::get();
    case Kind::Scalars:
      return c10::NumberType::get();
    default:
      return c10::OptionalType::ofTensor();
  }
}

c10::IValue get_list(Reader& in, Kind kind) {
  const std::size_t count = in.array();
  c10::impl::GenericList list(type_of_elements(kind));
  list.reserve(count);  // WR-1 ensures that so many are there
  for (std::size_t i = 0; i < count; ++i) {
    list.push_back(get_element(in, kind));
  }
  return list;
}

}  // namespace

bool can_travel(const c10::IValue& literal) {
  return kind_of(literal).has_value();
}

void put_literal(Writer& out, const c10::IValue& literal) {
  const std::optional<Kind> kind = kind_of(literal);
  SC_CHECK(kind, "a literal has a form on the wire");
  out.array(2);
  out.natural(static_cast<std::uint64_t>(*kind));
  switch (*kind) {
    case Kind::None:
    case Kind::NoTensor:
      return out.nil();
    case Kind::Bool:
      return out.boolean(literal.toBool());
    case Kind::Int:
      return out.integer(literal.toInt());
    case Kind::Double:
      return out.number(literal.toDouble());
    case Kind::Complex:
      return put_complex(out, literal.toComplexDouble());
    case Kind::Text:
      return out.text(literal.toStringRef());
    default:
      break;
  }
  const auto elements = literal.toListRef();
  out.array(elements.size());
  for (const c10::IValue& element : elements) {
    put_element(out, *kind, element);
  }
}

c10::IValue get_literal(Reader& in) {
  in.array_of(2, "a literal");
  const std::uint64_t number = in.natural();
  if (number > static_cast<std::uint64_t>(Kind::NoTensors)) {
    in.refuse(fmt::format("there is no literal of kind {}", number));
  }
  const auto kind = static_cast<Kind>(number);
  switch (kind) {
    case Kind::None:
    case Kind::NoTensor:
      if (!in.take_nil()) {
        in.refuse("an absent value has content");
      }
      return kind == Kind::None ? c10::IValue() : c10::IValue(at::Tensor());
    case Kind::Bool:
      return in.boolean();
    case Kind::Int:
      return in.integer();
    case Kind::Double:
      return in.number();
    case Kind::Complex:
      return get_complex(in);
    case Kind::Text:
      return std::string(in.text());
    default:
      return get_list(in, kind);
  }
}

}  // namespace stagecraft::wire
