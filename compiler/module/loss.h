/// Loss is the function that training minimizes, of the module's outputs and the batch's labels.
///
///   [](torch::Tensor output, torch::Tensor label) { return torch::mse_loss(output, label); }
///   torch::nn::CrossEntropyLoss()       // any loss module: itself, a holder, a pointer, AnyModule
///   torch::mse_loss, torch::nn::functional::huber_loss   // with their defaults
///   [](torch::Tensor output) { return output.square().mean(); }    // no labels
///   [](const std::vector<torch::Tensor>& outputs,
///      const std::vector<torch::Tensor>& labels) { ... }
///
/// LO-1: a loss of tensors gets all outputs, then all labels. A loss that takes fewer tensors gets
///       the first output and all labels, and the module's other outputs are ignored. A template
///       counts as a loss of tensors.
/// LO-2: copies of a Loss share the state of the callable.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/module/call.h"
#include "stagecraft/compiler/module/spread.h"
#include "stagecraft/compiler/module/torch_loss.h"

namespace stagecraft {

namespace internal {

using Tensors = std::vector<at::Tensor>;
using LossFunction = std::function<at::Tensor(const Tensors& outputs, const Tensors& labels)>;

struct TakeScalar {
  using Result = at::Tensor;
  at::Tensor operator()(at::Tensor loss) const { return loss; }
};

/// Returns the arguments that LO-1 gives to a loss which takes these numbers of tensors.
/// Errors: UsageArgument if none of them fits, or two do.
[[nodiscard]] Tensors arguments_of(const TakenNumbers& taken,
                                   const Tensors& outputs,
                                   const Tensors& labels);

/// Reports a std::out_of_range that left a loss of lists, with its message `what` and the likely
/// cause.
[[noreturn]] void refuse_out_of_range(const char* what,
                                      const Tensors& outputs,
                                      const Tensors& labels);

/// DefaultOptions stands for the last argument of torch::nn::functional's losses. A pointer to such
/// a function has lost its default arguments.
struct DefaultOptions {
  template <class T>
  static consteval bool of_torch() {
    return std::string_view(__PRETTY_FUNCTION__).find("T = torch::nn::") != std::string_view::npos;
  }

  template <class T>
  requires(of_torch<T>() && std::default_initializable<T>) operator T()
      const {  // NOLINT(google-explicit-constructor): stands for what the function takes
    return T();
  }
};

template <class F>
struct WithDefaultOptions {
  F function;

  template <class... T>
  requires std::invocable<F, T..., DefaultOptions>
  decltype(auto) operator()(T&&... tensors) const {
    return function(std::forward<T>(tensors)..., DefaultOptions());
  }
};

template <class Callee>
consteval bool takes_two_lists() {
  return fits<Callee, TakeScalar, Tensors&, Tensors&>();
}

/// Returns the loss as a function. For a template, tensors are tried first, since its body may not
/// compile with lists. For a callable with one signature, lists are tried first, since one tensor
/// converts to a TensorList.
template <class Callee>
consteval bool takes_tensors() {
  if constexpr (kOneSignature<Callee>) {
    return !takes_two_lists<Callee>() && kTaken<Callee, TakeScalar>.any();
  } else {
    return kTaken<Callee, TakeScalar>.any();
  }
}

template <class F>
LossFunction function_of(F given) {
  using Callee = CalleeOf<F>;
  if (internal::holds_nothing(given)) {
    return {};
  }
  // The loss is shared, because a std::function must be copyable and F may be move-only.
  if constexpr (takes_tensors<Callee>()) {
    return [loss = std::make_shared<F>(std::move(given))](const Tensors& outputs,
                                                          const Tensors& labels) {
      const Tensors arguments = arguments_of(kTaken<Callee, TakeScalar>, outputs, labels);
      return internal::spread<TakeScalar>(internal::callee_of(*loss), arguments);
    };
  } else if constexpr (takes_two_lists<Callee>()) {
    return [loss = std::make_shared<F>(std::move(given))](Tensors outputs,
                                                          Tensors labels) -> at::Tensor {
      try {
        return internal::call(internal::callee_of(*loss), outputs, labels);
      } catch (const std::out_of_range& e) {
        refuse_out_of_range(e.what(), outputs, labels);
      }
    };
  } else if constexpr (std::is_function_v<Callee> && takes_tensors<WithDefaultOptions<F>>()) {
    return function_of(WithDefaultOptions<F>{given});
  } else if constexpr (HasTorchLoss<F>) {
    return function_of(torch_loss(given));
  } else {
    static_assert(kNever<F>,
                  "CompileOptions::loss takes (output, label), (output), or (outputs, labels) as "
                  "std::vector<at::Tensor>, and returns an at::Tensor: pass such a function or a "
                  "loss module; wrap a function with more parameters, or an overloaded one, in a "
                  "lambda");
    return {};
  }
}

}  // namespace internal

class Loss {
 public:
  /// Makes no loss; compile refuses it.
  Loss() = default;

  /// A null pointer, an empty holder and an empty std::function also make no loss.
  template <class F>
  requires(!std::same_as<F, Loss>)
      Loss(F f)  // NOLINT(google-explicit-constructor): a function is a loss
      : call_(internal::function_of(std::move(f))) {}

  /// Chooses the form with options of a loss that torch::nn::functional overloads.
  template <class Options>
  requires(internal::DefaultOptions::of_torch<Options>())
      Loss(at::Tensor (*f)(const at::Tensor&,
                           const at::Tensor&,
                           const Options&))  // NOLINT(google-explicit-constructor): likewise
      : call_(internal::function_of(f)) {}

  [[nodiscard]] const internal::LossFunction& call() const { return call_; }

 private:
  internal::LossFunction call_;
};

}  // namespace stagecraft
