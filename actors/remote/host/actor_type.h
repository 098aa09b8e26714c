/// ActorType is what a worker must know of a class to run objects of it as remote actors: how to
/// make one, and its methods. A class lists them itself, so that nothing is registered globally:
///
///   class Tokenizer {
///    public:
///     explicit Tokenizer(std::string file);
///     at::Tensor encode(const std::string& text);
///     using Remote = sc::Remote<Tokenizer(std::string), &Tokenizer::encode>;
///   };
///
/// AT-1: a worker calls only constructors and methods that its own program lists. Names travel, and
///       code and addresses do not.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>

#include "stagecraft/actors/remote/wire/payload.h"

namespace stagecraft {

/// Remote lists the constructor and the methods of a class that may be called from elsewhere.
template <class Constructor, auto... Methods>
struct Remote;

namespace detail {

/// Returns "Tokenizer::encode" for what a compiler says of a function that has a method as its
/// template argument.
[[nodiscard]] std::string method_name(std::string_view pretty_function);
/// Returns the type's name in the source.
[[nodiscard]] std::string type_name(const std::type_info& type);

template <auto Method>
std::string name_of_method() {
  return method_name(__PRETTY_FUNCTION__);
}

template <class Method>
struct MethodTraits;
template <class T, class R, class... Args>
struct MethodTraits<R (T::*)(Args...)> {
  using Class = T;
  using Result = std::conditional_t<std::is_void_v<R>, std::monostate, std::decay_t<R>>;
  using Parameters = std::tuple<std::decay_t<Args>...>;
  static constexpr bool kReturns = !std::is_void_v<R>;
};
template <class T, class R, class... Args>
struct MethodTraits<R (T::*)(Args...) const> : MethodTraits<R (T::*)(Args...)> {};
template <class T, class R, class... Args>
struct MethodTraits<R (T::*)(Args...) noexcept> : MethodTraits<R (T::*)(Args...)> {};
template <class T, class R, class... Args>
struct MethodTraits<R (T::*)(Args...) const noexcept> : MethodTraits<R (T::*)(Args...)> {};

/// Calls `work` with the values that the payloads hold. Errors: WireFormat.
template <class Tuple, class Work>
decltype(auto) with_arguments(const std::vector<Payload>& payloads, Work&& work) {
  return [&]<std::size_t... I>(std::index_sequence<I...>)->decltype(auto) {
    return work(unpack<std::tuple_element_t<I, Tuple>>(payloads.at(I))...);
  }
  (std::make_index_sequence<std::tuple_size_v<Tuple>>());
}

}  // namespace detail

struct ActorMethod {
  std::string name;
  std::size_t parameters = 0;
  Payload (*call)(void* object, const std::vector<Payload>& arguments) = nullptr;
};

struct ActorType {
  std::string name;
  std::size_t parameters = 0;  ///< of the constructor
  std::shared_ptr<void> (*make)(const std::vector<Payload>& arguments) = nullptr;
  std::vector<ActorMethod> methods;
};

template <class T, class... Args, auto... Methods>
struct Remote<T(Args...), Methods...> {
  using Parameters = std::tuple<std::decay_t<Args>...>;

  /// Returns the position of a method; the number of methods for one that is not listed.
  template <auto Method>
  [[nodiscard]] static constexpr std::size_t position() {
    std::size_t at = 0;
    (void)((is_same<Method, Methods>() || (++at, false)) || ...);
    return at;
  }
  static constexpr std::size_t kMethods = sizeof...(Methods);

  [[nodiscard]] static ActorType type() {
    return {.name = detail::type_name(typeid(T)),
            .parameters = sizeof...(Args),
            .make = [](const std::vector<Payload>& arguments) -> std::shared_ptr<void> {
              return detail::with_arguments<Parameters>(arguments, [](auto&&... values) {
                return std::make_shared<T>(std::move(values)...);
              });
            },
            .methods = {method<Methods>()...}};
  }

 private:
  template <auto A, auto B>
  static constexpr bool is_same() {
    if constexpr (std::is_same_v<decltype(A), decltype(B)>) {
      return A == B;
    } else {
      return false;
    }
  }

  template <auto Method>
  static ActorMethod method() {
    using Traits = detail::MethodTraits<decltype(Method)>;
    return {.name = detail::name_of_method<Method>(),
            .parameters = std::tuple_size_v<typename Traits::Parameters>,
            .call = [](void* object, const std::vector<Payload>& arguments) {
              return detail::with_arguments<typename Traits::Parameters>(
                  arguments, [object](auto&&... values) {
                    T& self = *static_cast<T*>(object);
                    if constexpr (Traits::kReturns) {
                      return pack<typename Traits::Result>((self.*Method)(std::move(values)...));
                    } else {
                      (self.*Method)(std::move(values)...);
                      return pack(std::monostate());
                    }
                  });
            }};
  }
};

/// ActorTypes holds the types that a process can make actors of. Any thread may use it.
class ActorTypes {
 public:
  ActorTypes() = default;
  explicit ActorTypes(std::vector<ActorType> types);

  /// Adds a type, or changes nothing if it is here.
  /// Errors: UsageArgument if there is another one of that name.
  void add(ActorType type);
  /// Returns the type, which stays as long as this object. `methods`: as the caller lists them.
  /// Errors: UsageArgument for a type that is not here, or that lists other methods.
  [[nodiscard]] const ActorType& find(const std::string& name,
                                      const std::vector<std::string>& methods) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, ActorType> types_;
};

/// Returns the types of a worker program: `worker_main(argc, argv, sc::types<Tokenizer, Judge>())`.
template <class... Types>
[[nodiscard]] std::shared_ptr<ActorTypes> types() {
  return std::make_shared<ActorTypes>(std::vector<ActorType>{Types::Remote::type()...});
}

}  // namespace stagecraft
