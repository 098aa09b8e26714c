/// fields.h defines put and get, which write and read any record that has a list of its fields
/// (visit_fields), field by field.
///
///   integers, ids, enumerators   integers          vectors             arrays
///   bool, floats, std::string    their own kinds   std::map            maps, keys ascending
///   chrono durations             their count       std::optional       nil, or the value
///   records                      arrays            std::variant        array of 2: which, value
///   std::shared_ptr              its value; never null
///
/// A type that has no list and none of these forms is a leaf. The writer or reader in use names its
/// leaves (`using Leaves = std::tuple<...>`) and has `leaf(value)` for each.
/// FW-1: fields have no names on the wire. Both ends must agree on a record, so its list of fields
///       is part of the version of every message that contains it.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "stagecraft/base/check.h"
#include "stagecraft/base/ids.h"
#include "stagecraft/compiler/wire/reader.h"
#include "stagecraft/compiler/wire/writer.h"

namespace stagecraft::wire {

/// kLast is the last enumerator of an enumeration that is sent. Enumerators count from 0.
template <class E>
inline constexpr std::nullptr_t kLast = nullptr;

namespace internal {

template <class T, class Tuple>
inline constexpr bool kIsOneOf = false;
template <class T, class... Each>
inline constexpr bool kIsOneOf<T, std::tuple<Each...>> = (std::is_same_v<T, Each> || ...);

template <template <class...> class Form, class T>
inline constexpr bool kIsA = false;
template <template <class...> class Form, class... Args>
inline constexpr bool kIsA<Form, Form<Args...>> = true;

template <class T>
inline constexpr bool kIsId = false;
template <class Name, class Int>
inline constexpr bool kIsId<StrongId<Name, Int>> = true;

template <class T>
concept Duration = kIsA<std::chrono::duration, T>;

template <class T>
concept Record = requires(T& record) {
  visit_fields(record, [](auto&...) {});
};

template <class T>
inline constexpr bool kNotForTheWire = false;

template <class E>
constexpr std::underlying_type_t<E> last() {
  static_assert(std::is_same_v<std::remove_const_t<decltype(kLast<E>)>, E>,
                "name the last enumerator of a type that is sent in kLast");
  return static_cast<std::underlying_type_t<E>>(kLast<E>);
}

}  // namespace internal

template <class Out, class T>
void put(Out& out, const T& value) {
  using namespace internal;
  if constexpr (kIsOneOf<T, typename Out::Leaves>) {
    out.leaf(value);
  } else if constexpr (std::is_same_v<T, bool>) {
    out.boolean(value);
  } else if constexpr (std::is_enum_v<T>) {
    const auto number = static_cast<std::underlying_type_t<T>>(value);
    SC_CHECK(number >= 0 && number <= last<T>(), "an enumerator is one of its enumeration");
    out.integer(number);
  } else if constexpr (std::is_unsigned_v<T>) {
    out.natural(value);
  } else if constexpr (std::is_integral_v<T>) {
    out.integer(value);
  } else if constexpr (std::is_floating_point_v<T>) {
    static_assert(sizeof(T) <= sizeof(double), "a long double would lose bits");
    out.number(value);
  } else if constexpr (kIsId<T>) {
    out.integer(value.value);
  } else if constexpr (Duration<T>) {
    out.integer(value.count());
  } else if constexpr (std::is_same_v<T, std::string>) {
    out.text(value);
  } else if constexpr (kIsA<std::vector, T>) {
    out.array(value.size());
    for (std::size_t i = 0; i < value.size(); ++i) {
      put(out, static_cast<const typename T::value_type&>(value[i]));
    }
  } else if constexpr (kIsA<std::map, T>) {
    out.map(value.size());
    for (const auto& [key, mapped] : value) {
      put(out, key);
      put(out, mapped);
    }
  } else if constexpr (kIsA<std::optional, T>) {
    value ? put(out, *value) : out.nil();
  } else if constexpr (kIsA<std::shared_ptr, T>) {
    put(out, *value);
  } else if constexpr (kIsA<std::variant, T>) {
    out.array(2);
    out.natural(value.index());
    std::visit([&](const auto& held) { put(out, held); }, value);
  } else if constexpr (Record<T>) {
    visit_fields(const_cast<T&>(value), [&](const auto&... field) {  // only read
      out.array(sizeof...(field));
      (put(out, field), ...);
    });
  } else {
    static_assert(kNotForTheWire<T>, "this type has no form on the wire");
  }
}

template <class In, class T>
void get(In& in, T& value);

namespace internal {

template <class In, class T>
T integer_of(In& in) {
  if constexpr (std::is_unsigned_v<T>) {
    const std::uint64_t read = in.natural();
    if (!std::in_range<T>(read)) {
      in.refuse("the number " + std::to_string(read) + " does not fit");
    }
    return static_cast<T>(read);
  } else {
    const std::int64_t read = in.integer();
    if (!std::in_range<T>(read)) {
      in.refuse("the number " + std::to_string(read) + " does not fit");
    }
    return static_cast<T>(read);
  }
}

template <class In, class E>
E enumerator_of(In& in) {
  const std::int64_t read = in.integer();
  if (read < 0 || read > last<E>()) {
    in.refuse("an enumeration that ends at " + std::to_string(last<E>()) + " has no " +
              std::to_string(read));
  }
  return static_cast<E>(read);
}

template <std::size_t Index, class In, class... Each>
void get_alternative(In& in, std::size_t index, std::variant<Each...>& value) {
  if constexpr (Index == sizeof...(Each)) {
    in.refuse("expected one of " + std::to_string(Index) + " alternatives, found number " +
              std::to_string(index));
  } else if (index == Index) {
    get(in, value.template emplace<Index>());
  } else {
    get_alternative<Index + 1>(in, index, value);
  }
}

template <class In, class K, class T>
void get_map(In& in, std::map<K, T>& value) {
  const std::size_t count = in.map();
  for (std::size_t i = 0; i < count; ++i) {
    K key{};
    get(in, key);
    if (!value.empty() && !(value.rbegin()->first < key)) {
      in.refuse("the keys of a map are not ascending");
    }
    get(in, value.emplace_hint(value.end(), key, T{})->second);
  }
}

template <class In, class T>
void get_vector(In& in, std::vector<T>& value) {
  const std::size_t count = in.array();  // WR-1 ensures that so many are there
  value.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<T, bool>) {
      value[i] = in.boolean();
    } else {
      get(in, value[i]);
    }
  }
}

}  // namespace internal

/// Reads a value.
/// Requires: `value` is default-constructed.
/// Errors: WireFormat.
template <class In, class T>
void get(In& in, T& value) {
  using namespace internal;
  if constexpr (kIsOneOf<T, typename In::Leaves>) {
    in.leaf(value);
  } else if constexpr (std::is_same_v<T, bool>) {
    value = in.boolean();
  } else if constexpr (std::is_enum_v<T>) {
    value = enumerator_of<In, T>(in);
  } else if constexpr (std::is_integral_v<T>) {
    value = integer_of<In, T>(in);
  } else if constexpr (std::is_floating_point_v<T>) {
    value = static_cast<T>(in.number());
  } else if constexpr (kIsId<T>) {
    value = T(integer_of<In, decltype(value.value)>(in));
  } else if constexpr (Duration<T>) {
    value = T(integer_of<In, typename T::rep>(in));
  } else if constexpr (std::is_same_v<T, std::string>) {
    value = std::string(in.text());
  } else if constexpr (kIsA<std::vector, T>) {
    get_vector(in, value);
  } else if constexpr (kIsA<std::map, T>) {
    get_map(in, value);
  } else if constexpr (kIsA<std::optional, T>) {
    if (!in.take_nil()) {
      get(in, value.emplace());
    }
  } else if constexpr (kIsA<std::shared_ptr, T>) {
    auto made = std::make_shared<std::remove_const_t<typename T::element_type>>();
    get(in, *made);
    value = std::move(made);
  } else if constexpr (kIsA<std::variant, T>) {
    in.array_of(2, "an alternative");
    const auto index = integer_of<In, std::size_t>(in);
    get_alternative<0>(in, index, value);
  } else if constexpr (Record<T>) {
    visit_fields(value, [&](auto&... field) {
      in.array_of(sizeof...(field), "a record");
      (get(in, field), ...);
    });
  } else {
    static_assert(kNotForTheWire<T>, "this type has no form on the wire");
  }
}

}  // namespace stagecraft::wire
