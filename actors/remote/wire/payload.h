/// Payload holds values on their way to a method of a remote actor, or back: their bytes, and the
/// tensors in them.
///
/// A value may be a number, a bool, an enumerator, a string, a tensor, an id, a duration, a vector,
/// a map, an optional or a variant of values, or a struct of the user's with a list of its fields:
///
///   struct Match { std::int64_t row; at::Tensor cost; };
///   template <class V> decltype(auto) visit_fields(Match& m, V&& v) { return v(m.row, m.cost); }
///
/// compiler/wire/fields.h gives the form of each. A value must have a default constructor, and an
/// enumeration names its last enumerator in wire::kLast.
/// PK-1: tensors are not copied. Whoever puts one into a payload does not write to it afterwards.
/// PK-2: tensors of devices are copied into the host's memory. No payload takes autograd along.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/wire/fields.h"

namespace stagecraft {

struct Payload {
  std::string bytes;
  std::vector<at::Tensor> tensors;
};

template <class V>
decltype(auto) visit_fields(Payload& m, V&& v) {
  return v(m.bytes, m.tensors);
}

namespace wire {

/// Writes a tensor as its position among the tensors of the payload; nil if it is undefined.
class PayloadWriter : public Writer {
 public:
  using Leaves = std::tuple<at::Tensor>;
  /// Errors: UsageArgument for a tensor that no transport carries.
  void leaf(const at::Tensor& tensor);
  [[nodiscard]] Payload take_payload() { return {take(), std::move(tensors_)}; }

 private:
  std::vector<at::Tensor> tensors_;
};

/// Reads what a PayloadWriter wrote. Requires: the payload outlives the reader.
class PayloadReader : public Reader {
 public:
  using Leaves = std::tuple<at::Tensor>;
  explicit PayloadReader(const Payload& payload) : PayloadReader(payload.bytes, payload.tensors) {}
  PayloadReader(std::string_view bytes, const std::vector<at::Tensor>& tensors)
      : Reader(bytes), tensors_(tensors) {}
  void leaf(at::Tensor& tensor);
  /// Errors: WireFormat if there is a value or a tensor left.
  void end() const;

 private:
  const std::vector<at::Tensor>& tensors_;
  std::size_t next_ = 0;
};

}  // namespace wire

/// Packs a value; nil for a std::monostate, the value of a method that returns nothing.
template <class T>
[[nodiscard]] Payload pack(const T& value) {
  wire::PayloadWriter out;
  if constexpr (std::is_same_v<T, std::monostate>) {
    out.nil();
  } else {
    wire::put(out, value);
  }
  return out.take_payload();
}

/// Errors: WireFormat for a payload that holds no value of this type.
template <class T>
[[nodiscard]] T unpack(const Payload& payload) {
  static_assert(std::is_default_constructible_v<T>,
                "a value that travels is made before it is read");
  T value{};
  wire::PayloadReader in(payload);
  if constexpr (std::is_same_v<T, std::monostate>) {
    (void)in.take_nil();
  } else {
    wire::get(in, value);
  }
  in.end();
  return value;
}

}  // namespace stagecraft
