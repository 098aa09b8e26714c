/// RemoteActor is a handle to an object that lives on a rank of a cluster: a thread of this
/// process, or another process on any host. Calls of its methods return futures.
///
///   auto tokenizer = cluster.spawn<Tokenizer>(sc::on(Rank(2)), "vocabulary.txt");
///   sc::Future<at::Tensor> ids = tokenizer.call<&Tokenizer::encode>(text);
///   sc::Future<double> score = judge.call<&Judge::score>(ids);   // ids go from rank to rank
///
/// The object's class lists what may be called (host/actor_type.h). Copies of a handle are the same
/// actor, which ends with the last one, after the calls that it has. Any thread may use a handle.
///
/// RH-1: calls of one handle run in the order in which they were made, one after the other unless
///       On::concurrency allows more.
/// RH-2: a tensor that is given to a call, or that a method returns, is not copied where both ends
///       are in one process: nobody writes to it afterwards.
/// RH-3: what a method throws comes to the reader of the future, with its type, message and rank.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "stagecraft/actors/executor/step/foreign_error.h"
#include "stagecraft/actors/remote/remote_actors.h"

namespace stagecraft {

namespace detail {

template <class T>
inline constexpr bool kIsFuture = false;
template <class T>
inline constexpr bool kIsFuture<Future<T>> = true;

template <class Result>
class TypedCompletion final : public Completion {
 public:
  explicit TypedCompletion(std::shared_ptr<Promise<Result>> promise)
      : promise_(std::move(promise)) {}
  void value(const Payload& value) override {
    try {
      promise_->set_value(unpack<Result>(value));
    } catch (...) {
      promise_->set_error(foreign_error(std::current_exception()));
    }
  }
  void error(const Error& error) override { promise_->set_error(error); }

 private:
  const std::shared_ptr<Promise<Result>> promise_;
};

/// Reads a future in this process, for a rank that gets its value.
template <class T>
void read_future(const Future<T>& future, const std::function<void(Delivered)>& take) {
  (void)future.on_ready([future, take] {
    Delivered delivered;
    try {
      delivered.value = pack(future.get());
    } catch (...) {
      delivered.error = to_chain(foreign_error(std::current_exception()));
    }
    take(std::move(delivered));
  });
}

template <class Parameter, class Given>
GivenArgument given_argument(Given&& given) {
  using Plain = std::decay_t<Given>;
  if constexpr (kIsFuture<Plain>) {
    static_assert(std::is_same_v<Plain, Future<Parameter>>,
                  "the future's value has another type than the parameter");
    if (!given.valid()) {
      throw Error(Errc::UsageArgument, "a call got a future without a promise as an argument");
    }
    return GivenFuture{.origin = given.origin(),
                       .read = [future = given](const std::function<void(Delivered)>& take) {
                         read_future(future, take);
                       }};
  } else {
    return pack<Parameter>(static_cast<Parameter>(std::forward<Given>(given)));
  }
}

template <class Parameters, class... Given>
std::vector<GivenArgument> given_arguments(Given&&... given) {
  static_assert(std::tuple_size_v<Parameters> == sizeof...(Given),
                "a call gives as many arguments as there are parameters");
  std::vector<GivenArgument> arguments;
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    (arguments.push_back(
         given_argument<std::tuple_element_t<I, Parameters>>(std::forward<Given>(given))),
     ...);
  }
  (std::index_sequence_for<Given...>());
  return arguments;
}

}  // namespace detail

template <class T>
class RemoteActor {
 public:
  /// Makes the actor and waits for its constructor. Errors: those of RemoteActors::make.
  template <class... Given>
  RemoteActor(std::shared_ptr<RemoteActors> actors, const On& on, Given&&... given)
      : shared_(
            std::make_shared<const Shared>(std::move(actors),
                                           on,
                                           detail::given_arguments<typename T::Remote::Parameters>(
                                               std::forward<Given>(given)...))) {}

  /// Calls a method. Arguments are values, or futures of them, which are not read here.
  /// Errors: those of RemoteActors::call; in the future, those of the method, WorkerLost if its
  /// rank is lost, ClusterTimeout after On::limit.
  template <auto Method, class... Given>
  auto call(Given&&... given) const
      -> Future<typename detail::MethodTraits<decltype(Method)>::Result> {
    using Traits = detail::MethodTraits<decltype(Method)>;
    using Result = typename Traits::Result;
    constexpr std::size_t kPosition = T::Remote::template position<Method>();
    static_assert(kPosition < T::Remote::kMethods, "list the method in the class's Remote");
    const auto promise = std::make_shared<Promise<Result>>();
    auto origin = shared_->actors->call(
        shared_->id,
        kPosition,
        detail::given_arguments<typename Traits::Parameters>(std::forward<Given>(given)...),
        std::make_unique<detail::TypedCompletion<Result>>(promise),
        std::is_arithmetic_v<Result> || std::is_same_v<Result, std::monostate>);
    return promise->future(std::move(origin));
  }

  [[nodiscard]] Rank rank() const { return shared_->rank; }

 private:
  struct Shared {
    Shared(std::shared_ptr<RemoteActors> a, const On& on, std::vector<GivenArgument> arguments)
        : actors(std::move(a)),
          rank(on.rank()),
          id(actors->make(on, T::Remote::type(), std::move(arguments))) {}
    ~Shared() { actors->end(id); }
    Shared(const Shared&) = delete;
    Shared& operator=(const Shared&) = delete;

    const std::shared_ptr<RemoteActors> actors;
    const Rank rank;
    const ActorId id;
  };

  std::shared_ptr<const Shared> shared_;
};

}  // namespace stagecraft
