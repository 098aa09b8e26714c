/// compile: from an ordinary module to a Program.
///
///   auto program = sc::compile(model, {.inputs = {tokens}, .labels = {targets}, .loss = loss, .microbatches = 8});
///
/// Captures forward and loss on the first microbatch, checks the record against the module on another one, cuts it
/// at the markers and measures the stages.
#pragma once

#include <ATen/core/Tensor.h>

#include <concepts>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "stagecraft/compiler/capture.h"
#include "stagecraft/compiler/program.h"

namespace stagecraft {

/// loss(output, label) or loss(outputs, labels) -> a scalar tensor.
class Loss {
 public:
  Loss() = default;

  template <class F>
    requires std::is_invocable_r_v<at::Tensor, F&, at::Tensor, at::Tensor>
  Loss(F f)  // NOLINT(google-explicit-constructor): a function is a loss
      : call_([f = std::move(f)](const Tensors& outputs, const Tensors& labels) mutable {
          return f(outputs.at(0), labels.at(0));
        }) {}

  template <class F>
    requires(!std::is_same_v<F, Loss> && std::is_invocable_r_v<at::Tensor, F&, const Tensors&, const Tensors&>)
  Loss(F f) : call_(std::move(f)) {}  // NOLINT(google-explicit-constructor)

  [[nodiscard]] const std::function<at::Tensor(const Tensors&, const Tensors&)>& call() const { return call_; }

 private:
  std::function<at::Tensor(const Tensors&, const Tensors&)> call_;
};

struct CompileOptions {
  Batch inputs;          ///< one example batch, as `step` will get them
  Batch labels;          ///< likewise
  Loss loss;             ///< per microbatch; the step's loss is their mean
  int microbatches = 1;  ///< equal parts in dim 0
};

/// The part of compile that is no template.
[[nodiscard]] Program compile_workload(const Workload& workload, const CompileOptions& options);

namespace compile_detail {

template <class T>
struct ForwardTraits;
template <class R, class C, class... A>
struct ForwardTraits<R (C::*)(A...)> {
  static constexpr std::size_t kArity = sizeof...(A);
};
template <class R, class C, class... A>
struct ForwardTraits<R (C::*)(A...) const> {
  static constexpr std::size_t kArity = sizeof...(A);
};

void check_arity(std::size_t expected, std::size_t found);

inline Tensors to_tensors(at::Tensor t) { return {std::move(t)}; }
inline Tensors to_tensors(Tensors t) { return t; }
template <class... T>
Tensors to_tensors(const std::tuple<T...>& t) {
  return std::apply([](const auto&... each) { return Tensors{each...}; }, t);
}
template <class A, class B>
Tensors to_tensors(const std::pair<A, B>& t) {
  return {t.first, t.second};
}

template <class Module, std::size_t... I>
Tensors call_forward(Module& module, const Tensors& inputs, std::index_sequence<I...>) {
  return to_tensors(module.forward(inputs[I]...));
}

template <class Module>
decltype(auto) module_of(Module& module) {
  if constexpr (requires { module.get()->named_parameters(); }) {
    return *module.get();  // a module holder or a shared pointer
  } else {
    return (module);
  }
}

}  // namespace compile_detail

/// Compiles `module`: a torch::nn::Module with one `forward` of tensors, a holder of one, or a shared pointer to one.
/// The program takes the parameters over: read them later by `Trainer::state_dict()`.
/// Errors: UsageArgument, CompileCapture, CompilePartition, CompileShape; each names operator and stage.
/// Cost: four forwards and two backwards of one microbatch, on the calling thread alone.
template <class Module>
[[nodiscard]] Program compile(Module& module, const CompileOptions& options) {
  auto& m = compile_detail::module_of(module);
  using M = std::remove_reference_t<decltype(m)>;
  constexpr std::size_t kArity = compile_detail::ForwardTraits<decltype(&M::forward)>::kArity;
  compile_detail::check_arity(kArity, options.inputs.size());
  Workload workload;
  workload.forward = [&m](const Tensors& inputs) {
    return compile_detail::call_forward(m, inputs, std::make_index_sequence<kArity>{});
  };
  workload.loss = options.loss.call();
  for (const auto& item : m.named_parameters()) {
    workload.parameters.push_back({item.key(), item.value()});
  }
  for (const auto& item : m.named_buffers()) {
    workload.buffers.push_back({item.key(), item.value()});
  }
  return compile_workload(workload, options);
}

}  // namespace stagecraft
