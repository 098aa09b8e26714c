/// call.h calls a module by its `forward` and anything else by `()`. For a holder or a pointer it
/// calls the object inside. This file does not depend on tensors. Markers, compile and Loss use it.
///
/// Namespace internal holds helpers that the templates need in headers. Programs do not call them
/// by name.
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <type_traits>
#include <utility>

namespace stagecraft::internal {

/// kNever is false once it is instantiated. It is the condition of a static_assert that only prints
/// a message.
template <class...>
inline constexpr bool kNever = false;

/// Holder matches torch::nn::AnyModule and the module holders that TORCH_MODULE makes.
template <class T>
concept Holder = requires(const T& holder) {
  holder.ptr();
  { holder.is_empty() } -> std::same_as<bool>;
};

template <class T>
concept Pointer = std::is_pointer_v<T> || requires(const T& pointer) {
  typename T::element_type;
  *pointer;
  pointer == nullptr;
};

/// Returns true for a null pointer, an empty holder and an empty std::function.
template <class T>
[[nodiscard]] bool holds_nothing(const T& given) {
  if constexpr (Holder<T>) {
    return given.is_empty();
  } else if constexpr (!std::is_function_v<T> && std::constructible_from<T, std::nullptr_t> &&
                       requires { given == nullptr; }) {
    return given == nullptr;
  } else {
    return false;
  }
}

/// Returns the object to call for `given`. Requires: `given` holds something.
template <class T>
[[nodiscard]] decltype(auto) callee_of(T& given) {
  using Bare = std::remove_const_t<T>;
  if constexpr (Pointer<Bare>) {
    return (*given);
  } else if constexpr (Holder<Bare> && requires { *given; }) {
    return (*given.ptr());  // not *given: a const holder leaves its module mutable
  } else {
    return (given);
  }
}

template <class T>
using CalleeOf = std::remove_reference_t<decltype(callee_of(std::declval<T&>()))>;

template <class T, class... Args>
concept HasForward = requires(T& callee, Args&&... args) {
  callee.forward(std::forward<Args>(args)...);
};

template <class T, class... Args>
concept Callable = HasForward<T, Args...> || std::invocable<T&, Args...>;

/// kOneSignature is true if the callable is neither overloaded nor a template.
template <class T>
inline constexpr bool kOneSignature = std::is_function_v<T> || requires {
  &T::forward;
}
|| requires {
  &T::operator();
};

template <class T, class... Args>
requires Callable<T, Args...>
decltype(auto) call(T& callee, Args&&... args) {
  if constexpr (HasForward<T, Args...>) {
    return callee.forward(std::forward<Args>(args)...);
  } else {
    return std::invoke(callee, std::forward<Args>(args)...);
  }
}

}  // namespace stagecraft::internal
