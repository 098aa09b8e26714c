/// spread calls a module or function with tensors whose number is known only when the program runs.
///
/// For each number up to eight, the C++ compiler checks whether the callee takes so many tensors:
/// as lvalues (Tensor, const Tensor&, Tensor&, std::optional<Tensor>) or else as rvalues
/// (Tensor&&). So the call itself resolves overloads, templates and default arguments. If a number
/// does not fit, all tensors go as one list, if the callee takes one, or into the structures that
/// its forward takes (structured_call.h).
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/module/call.h"
#include "stagecraft/compiler/module/structured_call.h"

namespace stagecraft::internal {

inline constexpr std::size_t kMostArguments = 8;

/// TakenNumbers says how many tensors a callee can take.
struct TakenNumbers {
  std::array<bool, kMostArguments + 1> one_by_one{};
  bool as_list = false;     ///< takes any number
  bool structured = false;  ///< takes as many as its structures need, which is known only in the
                            ///< call

  [[nodiscard]] constexpr bool takes(std::size_t number) const {
    return as_list || structured || (number < one_by_one.size() && one_by_one[number]);
  }
  [[nodiscard]] constexpr bool any() const {
    bool some = as_list || structured;
    for (const bool taken : one_by_one) {
      some = some || taken;
    }
    return some;
  }
};

/// Returns "1 or 2 tensors", for messages.
[[nodiscard]] std::string to_string(const TakenNumbers& taken);

template <std::size_t>
using Lvalue = at::Tensor&;
template <std::size_t>
using Rvalue = at::Tensor&&;

/// Returns whether the callee can be called with `Args`, and `Take` with its result (with nothing,
/// if that is void).
template <class Callee, class Take, class... Args>
consteval bool fits() {
  if constexpr (Callable<Callee, Args...>) {
    using Result = decltype(internal::call(std::declval<Callee&>(), std::declval<Args>()...));
    if constexpr (std::is_void_v<Result>) {
      return std::is_invocable_v<Take>;
    } else {
      return std::is_invocable_v<Take, Result>;
    }
  } else {
    return false;
  }
}

template <class Callee, class Take, std::size_t... I>
consteval bool fits_number(std::index_sequence<I...>) {
  if constexpr (fits<Callee, Take, Lvalue<I>...>()) {
    return true;
  } else {
    return fits<Callee, Take, Rvalue<I>...>();
  }
}

template <class Callee, class Take, std::size_t... N>
consteval TakenNumbers find_taken(std::index_sequence<N...>) {
  TakenNumbers taken{
      .one_by_one = {false, fits_number<Callee, Take>(std::make_index_sequence<N + 1>())...}};
  // Do not try lists with a template that takes tensors: its body may not compile with one.
  if constexpr (kOneSignature<Callee> ||
                !(fits_number<Callee, Take>(std::make_index_sequence<N + 1>()) || ...)) {
    taken.as_list = fits<Callee, Take, std::vector<at::Tensor>&>() ||
                    fits<Callee, Take, std::vector<at::Tensor>&&>();
  }
  taken.structured = !taken.as_list && takes_structures<Callee, Take>();
  return taken;
}

template <class Callee, class Take, std::size_t... I>
auto call_with(Callee& callee, std::vector<at::Tensor>& tensors, std::index_sequence<I...>) {
  if constexpr (fits<Callee, Take, Lvalue<I>...>()) {
    return Take{}(internal::call(callee, tensors[I]...));
  } else {
    return Take{}(internal::call(callee, std::move(tensors[I])...));
  }
}

template <class Callee, class Take>
auto call_with_list(Callee& callee, std::vector<at::Tensor>& tensors) {
  if constexpr (fits<Callee, Take, std::vector<at::Tensor>&>()) {
    return Take{}(internal::call(callee, tensors));
  } else {
    return Take{}(internal::call(callee, std::move(tensors)));
  }
}

/// kTaken says how many tensors `Callee` takes. `Take` is a function object for the result: a call
/// does not count if `Take` cannot take its result.
template <class Callee, class Take>
inline constexpr TakenNumbers kTaken =
    find_taken<Callee, Take>(std::make_index_sequence<kMostArguments>());

/// Returns Take(callee(tensors...)). `names`: the names of the tensors, if they have some.
/// Requires: kTaken<Callee, Take>.takes(tensors.size()).
/// Errors: UsageArgument for another number of tensors than the callee's structures take.
template <class Take, class Callee>
typename Take::Result spread(Callee& callee,
                             std::vector<at::Tensor> tensors,
                             const std::vector<std::string>& names = {}) {
  typename Take::Result result;
  const auto call_if_so_many = [&]<std::size_t Number>() {
    if constexpr (kTaken<Callee, Take>.one_by_one[Number]) {
      if (tensors.size() == Number) {
        result =
            internal::call_with<Callee, Take>(callee, tensors, std::make_index_sequence<Number>());
        return true;
      }
    }
    return false;
  };
  const bool called = [&]<std::size_t... N>(std::index_sequence<N...>) {
    return (call_if_so_many.template operator()<N + 1>() || ...);
  }
  (std::make_index_sequence<kMostArguments>());
  if constexpr (kTaken<Callee, Take>.as_list) {
    if (!called) {
      result = internal::call_with_list<Callee, Take>(callee, tensors);
    }
  } else if constexpr (kTaken<Callee, Take>.structured) {
    if (!called) {
      result = internal::call_with_structures<Take>(
          callee,
          TensorReader(std::move(tensors), names),
          typename ParametersOf<decltype(&Callee::forward)>::Types());
    }
  }
  return result;
}

}  // namespace stagecraft::internal
