/// structured_call calls a forward that takes more than tensors: tuples, pairs, arrays, optionals,
/// vectors, std::map from std::string, plain structs, types of the user's (TensorsOf), nested in
/// any way, and any number of parameters of these types.
///
/// SN-1: tensors are handed out in the order in which the parameters are written. An optional is
///       set if tensors are left. A vector takes all that are left; a map does so too, under their
///       names (sc::named).
///
/// The parameters are read from the type of forward, so it must not be overloaded or a template.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/module/call.h"
#include "stagecraft/compiler/module/tensors_in.h"
#include "stagecraft/compiler/module/tensors_of.h"

namespace stagecraft::internal {

template <class... T>
struct TypeList {};

template <class Forward>
struct ParametersOf;
template <class R, class C, class... A>
struct ParametersOf<R (C::*)(A...)> {
  using Types = TypeList<A...>;
};
template <class R, class C, class... A>
struct ParametersOf<R (C::*)(A...) const> : ParametersOf<R (C::*)(A...)> {};
template <class R, class C, class... A>
struct ParametersOf<R (C::*)(A...) noexcept> : ParametersOf<R (C::*)(A...)> {};
template <class R, class C, class... A>
struct ParametersOf<R (C::*)(A...) const noexcept> : ParametersOf<R (C::*)(A...)> {};

template <class T>
inline constexpr bool kIsVector = false;
template <class T>
inline constexpr bool kIsVector<std::vector<T>> = true;

template <class T>
inline constexpr bool kIsMap = false;
template <class T>
inline constexpr bool kIsMap<std::map<std::string, T>> = true;

template <class T>
consteval bool can_be_made();

template <class Tuple, std::size_t... I>
consteval bool all_can_be_made(std::index_sequence<I...>) {
  return sizeof...(I) > 0 &&
         (can_be_made<std::remove_cvref_t<std::tuple_element_t<I, Tuple>>>() && ...);
}

template <class T>
consteval bool can_be_made() {
  if constexpr (MadeByUser<T> || std::same_as<T, at::Tensor>) {
    return true;
  } else if constexpr (Optional<T> || kIsVector<T>) {
    return can_be_made<typename T::value_type>();
  } else if constexpr (kIsMap<T>) {
    return can_be_made<typename T::mapped_type>();
  } else if constexpr (TupleLike<T>) {
    return all_can_be_made<T>(std::make_index_sequence<std::tuple_size_v<T>>());
  } else if constexpr (PlainStruct<T>) {
    using Members = decltype(members_of(std::declval<const T&>()));
    return all_can_be_made<Members>(std::make_index_sequence<std::tuple_size_v<Members>>());
  } else {
    return false;
  }
}

template <class T>
T made_of(TensorReader& in);

/// Makes the parts from left to right, since braces evaluate in that order (keeps SN-1).
template <class T, class Parts, std::size_t... I>
T made_of_parts(TensorReader& in, std::index_sequence<I...>) {
  return T{internal::made_of<std::remove_cvref_t<std::tuple_element_t<I, Parts>>>(in)...};
}

/// Makes a T. Requires: can_be_made<T>().
template <class T>
T made_of(TensorReader& in) {
  if constexpr (MadeByUser<T>) {
    return TensorsOf<T>::make(in);
  } else if constexpr (std::same_as<T, at::Tensor>) {
    return in.next();
  } else if constexpr (Optional<T>) {
    return in.done() ? T() : T(internal::made_of<typename T::value_type>(in));
  } else if constexpr (kIsVector<T>) {
    T all;
    while (!in.done()) {
      all.push_back(internal::made_of<typename T::value_type>(in));
    }
    return all;
  } else if constexpr (kIsMap<T>) {
    T all;
    while (!in.done()) {
      std::string name = in.next_name();
      all.insert_or_assign(std::move(name), internal::made_of<typename T::mapped_type>(in));
    }
    return all;
  } else if constexpr (TupleLike<T>) {
    return internal::made_of_parts<T, T>(in, std::make_index_sequence<std::tuple_size_v<T>>());
  } else {
    using Members = decltype(members_of(std::declval<const T&>()));
    return internal::made_of_parts<T, Members>(
        in, std::make_index_sequence<std::tuple_size_v<Members>>());
  }
}

template <class T>
concept OneForward = requires {
  typename ParametersOf<decltype(&T::forward)>::Types;
};

template <class Callee, class Take, class... A>
consteval bool structures_fit(TypeList<A...>) {
  constexpr bool kMade = sizeof...(A) > 0 && (can_be_made<std::remove_cvref_t<A>>() && ...);
  constexpr bool kMore = !(std::same_as<std::remove_cvref_t<A>, at::Tensor> && ...);
  if constexpr (kMade && kMore && HasForward<Callee, A...>) {
    using Result = decltype(std::declval<Callee&>().forward(std::declval<A>()...));
    if constexpr (std::is_void_v<Result>) {
      return std::is_invocable_v<Take>;
    } else {
      return std::is_invocable_v<Take, Result>;
    }
  } else {
    return false;
  }
}

/// Returns whether forward takes structures of tensors, and `Take` its result.
template <class Callee, class Take>
consteval bool takes_structures() {
  if constexpr (OneForward<Callee>) {
    return structures_fit<Callee, Take>(typename ParametersOf<decltype(&Callee::forward)>::Types());
  } else {
    return false;
  }
}

template <class Take, class Callee, class... A>
auto call_with_structures(Callee& callee, TensorReader in, TypeList<A...>) {
  std::tuple<std::remove_cvref_t<A>...> values{internal::made_of<std::remove_cvref_t<A>>(in)...};
  in.require_done();
  return std::apply(
      [&](auto&... value) { return Take{}(callee.forward(std::forward<A>(value)...)); }, values);
}

}  // namespace stagecraft::internal
