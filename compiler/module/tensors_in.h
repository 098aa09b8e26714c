/// tensors_in converts the result of a module into a list of tensors.
///
/// It takes apart tensors, optionals, tuples, pairs, arrays, vectors and other ranges, maps (by
/// keys), plain structs (aggregates without a base class) of up to eight members, and types of the
/// user's (TensorsOf). Each part may again be one of these.
///
/// TI-1: tensors are in the order in which they are written. An absent tensor (undefined, or an
///       empty optional) is left out.
#pragma once

#include <concepts>
#include <cstddef>
#include <iterator>
#include <optional>
#include <tuple>
#include <type_traits>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/module/tensors_of.h"

namespace stagecraft::internal {

/// FirstBase initializes the first base class of T, and no member.
template <class T>
struct FirstBase {
  template <class B>
  requires(std::is_base_of_v<B, T> && !std::same_as<B, T>) operator B()
      const;  // NOLINT(google-explicit-constructor): PlainStruct tests the conversion
};

template <class T>
concept PlainStruct =
    std::is_class_v<T> && std::is_aggregate_v<T> && !std::is_empty_v<T> && !requires {
  T{FirstBase<T>{}};
};

/// Returns how many members a plain struct has: as many as can be given a `{}`. Returns 0 for more
/// than eight members, or if one has no default.
template <class T>
consteval std::size_t member_count() {
  // clang-format off
  if constexpr (requires { T{{}, {}, {}, {}, {}, {}, {}, {}, {}}; }) { return 0; }
  else if constexpr (requires { T{{}, {}, {}, {}, {}, {}, {}, {}}; }) { return 8; }
  else if constexpr (requires { T{{}, {}, {}, {}, {}, {}, {}}; }) { return 7; }
  else if constexpr (requires { T{{}, {}, {}, {}, {}, {}}; }) { return 6; }
  else if constexpr (requires { T{{}, {}, {}, {}, {}}; }) { return 5; }
  else if constexpr (requires { T{{}, {}, {}, {}}; }) { return 4; }
  else if constexpr (requires { T{{}, {}, {}}; }) { return 3; }
  else if constexpr (requires { T{{}, {}}; }) { return 2; }
  else if constexpr (requires { T{{}}; }) { return 1; }
  else { return 0; }
  // clang-format on
}

/// Returns references to the members of a plain struct; an empty tuple if member_count is 0.
template <class T>
auto members_of(const T& value) {
  constexpr std::size_t kCount = member_count<T>();
  // clang-format off
  if constexpr (kCount == 1) { const auto& [a] = value; return std::tie(a); }
  else if constexpr (kCount == 2) { const auto& [a, b] = value; return std::tie(a, b); }
  else if constexpr (kCount == 3) { const auto& [a, b, c] = value; return std::tie(a, b, c); }
  else if constexpr (kCount == 4) { const auto& [a, b, c, d] = value; return std::tie(a, b, c, d); }
  else if constexpr (kCount == 5) {
    const auto& [a, b, c, d, e] = value; return std::tie(a, b, c, d, e); }
  else if constexpr (kCount == 6) {
    const auto& [a, b, c, d, e, f] = value; return std::tie(a, b, c, d, e, f); }
  else if constexpr (kCount == 7) {
    const auto& [a, b, c, d, e, f, g] = value; return std::tie(a, b, c, d, e, f, g); }
  else if constexpr (kCount == 8) {
    const auto& [a, b, c, d, e, f, g, h] = value; return std::tie(a, b, c, d, e, f, g, h); }
  else { return std::tuple<>(); }
  // clang-format on
}

template <class T>
concept Optional = requires(const T& value) {
  typename T::value_type;
  { value.has_value() } -> std::same_as<bool>;
  *value;
};

template <class T>
concept Range = requires(const T& value) {
  std::begin(value);
  std::end(value);
};

/// OrderedMap matches maps with an order of keys. That of an unordered map would differ between
/// processes.
template <class T>
concept OrderedMap = Range<T> && requires {
  typename T::key_compare;
  typename T::mapped_type;
};

template <class T>
concept TupleLike = requires {
  std::tuple_size<T>::value;
};

template <class T>
consteval bool is_made_of_tensors();

template <class Tuple, std::size_t... I>
consteval bool all_made_of_tensors(std::index_sequence<I...>) {
  return sizeof...(I) > 0 &&
         (is_made_of_tensors<std::remove_cvref_t<std::tuple_element_t<I, Tuple>>>() && ...);
}

template <class T>
consteval bool is_made_of_tensors() {
  if constexpr (std::convertible_to<const T&, at::Tensor> || ListedByUser<T>) {
    return true;
  } else if constexpr (Optional<T>) {
    return is_made_of_tensors<typename T::value_type>();
  } else if constexpr (OrderedMap<T>) {
    return is_made_of_tensors<typename T::mapped_type>();
  } else if constexpr (TupleLike<T>) {
    return all_made_of_tensors<T>(std::make_index_sequence<std::tuple_size_v<T>>());
  } else if constexpr (Range<T>) {
    return is_made_of_tensors<
        std::remove_cvref_t<decltype(*std::begin(std::declval<const T&>()))>>();
  } else if constexpr (PlainStruct<T>) {
    using Members = decltype(members_of(std::declval<const T&>()));
    return all_made_of_tensors<Members>(std::make_index_sequence<std::tuple_size_v<Members>>());
  } else {
    return false;
  }
}

template <class T>
void append(std::vector<at::Tensor>& all, const T& value) {
  const auto append_each = [&](const auto&... parts) { (internal::append(all, parts), ...); };
  if constexpr (std::convertible_to<const T&, at::Tensor>) {
    if (const at::Tensor tensor = value; tensor.defined()) {
      all.push_back(tensor);
    }
  } else if constexpr (ListedByUser<T>) {
    for (const at::Tensor& tensor : TensorsOf<T>::list(value)) {
      internal::append(all, tensor);
    }
  } else if constexpr (Optional<T>) {
    if (value.has_value()) {
      internal::append(all, *value);
    }
  } else if constexpr (OrderedMap<T>) {
    for (const auto& [key, part] : value) {
      internal::append(all, part);
    }
  } else if constexpr (TupleLike<T>) {
    std::apply(append_each, value);
  } else if constexpr (Range<T>) {
    for (const auto& part : value) {
      internal::append(all, part);
    }
  } else {
    std::apply(append_each, members_of(value));
  }
}

/// MadeOfTensors matches the types that `tensors_in` takes apart.
template <class T>
concept MadeOfTensors = is_made_of_tensors<T>();

/// Returns the tensors of `value`. Keeps TI-1.
template <MadeOfTensors T>
[[nodiscard]] std::vector<at::Tensor> tensors_in(const T& value) {
  std::vector<at::Tensor> all;
  internal::append(all, value);
  return all;
}

}  // namespace stagecraft::internal
