/// How Stagecraft calls what a program hands it: a module by its `forward`, anything else by `()`,
/// and a holder or a pointer through to what it holds. Knows no tensor. Used by markers, compile
/// and Loss.
///
/// Namespace internal holds what their templates need in headers, and no program calls by name.
#pragma once

#include <concepts>
#include <cstddef>
#include <functional>
#include <type_traits>
#include <utility>

namespace stagecraft::internal {

/// False, once it is instantiated: the condition of a static_assert that only says a sentence.
template <class...>
inline constexpr bool kNever = false;

/// torch::nn::AnyModule, and the module holders that TORCH_MODULE makes.
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

/// True for a null pointer, an empty holder and an empty std::function.
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

/// Returns what is called when `given` is. Requires: it holds something.
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

/// Neither overloaded nor a template.
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
