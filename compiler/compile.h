/// compile turns an ordinary module into a Program.
///
///   auto program = sc::compile(model, {.inputs = {tokens}, .labels = {targets}, .loss = loss,
///                                      .microbatches = 8});
///
/// It captures forward and loss on the first microbatch, checks the record against the module on
/// another one, cuts it at the markers and measures the stages.
///
/// CO-1: parameters, buffers, gradients, modes, batch and random numbers stay as they were. Forward
///       and loss run four times, or a fifth time if they throw at the second. State that they keep
///       elsewhere changes accordingly. They run as often again for every other shape that a step
///       brings.
/// CO-2: the program keeps module and loss for later shapes. If a shared_ptr owns the module, as in
///       every holder, the program shares its ownership. Any other module must live until the last
///       new shape.
#pragma once

#include <concepts>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/cut/cut.h"
#include "stagecraft/compiler/module/batch.h"
#include "stagecraft/compiler/module/call.h"
#include "stagecraft/compiler/module/kept_module.h"
#include "stagecraft/compiler/module/loss.h"
#include "stagecraft/compiler/module/module_state.h"
#include "stagecraft/compiler/module/spread.h"
#include "stagecraft/compiler/module/tensors_in.h"
#include "stagecraft/compiler/module/workload.h"
#include "stagecraft/compiler/program/program.h"
#include "stagecraft/compiler/stage/kept_values.h"
#include "stagecraft/compiler/stage/recompute.h"

namespace stagecraft {

struct ModelFile;  // has a compile of its own (import/load_model.h)

struct CompileOptions {
  Batch inputs;  ///< one example batch, in the form that `step` gets: one tensor per argument of
                 ///< forward
  Batch labels;  ///< one example batch for the loss; empty if it reads no labels
  Loss loss;     ///< per microbatch; the step's loss is their mean
  int microbatches = 1;  ///< equal parts in dim 0
  Cut cut;               ///< into stages
  Recompute recompute;   ///< the parts that run again instead of keeping values for a backward
  /// Limits how many shapes the microbatches of all steps may have, including the example batch's.
  /// 1 allows only that one.
  int shapes = 8;
  /// Selects values that each training step leaves on the ranks that make them. StepFuture::losses
  /// and StepFuture::outputs give futures of them.
  KeptValues keep;
};

namespace internal {

template <class T>
concept NoFile = !std::same_as<std::remove_cvref_t<T>, ModelFile>;

/// Does the part of compile that is not a template.
[[nodiscard]] Program compile_workload(const Workload& workload,
                                       const CompileOptions& options,
                                       ModuleSource source = {});

/// Returns `outputs`. Errors: CompileCapture if there is no output.
[[nodiscard]] Tensors not_empty(Tensors outputs);

struct TakeOutputs {
  using Result = Tensors;
  template <MadeOfTensors T>
  Tensors operator()(const T& outputs) const {
    return not_empty(internal::tensors_in(outputs));
  }
};

/// TakeAnything accepts any result. It serves to find the reason why a module does not fit.
struct TakeAnything {
  void operator()(const auto&...) const {}
};

/// Checks the number of inputs. Errors: UsageArgument for a number that forward does not take.
void check_inputs(const TakenNumbers& taken, std::size_t found);

/// Prints one sentence about the reason if a module cannot be compiled; returns true if it can.
template <class Callee>
consteval bool can_be_compiled() {
  using Bare = std::remove_const_t<Callee>;
  using Owner = std::remove_cvref_t<decltype(owner_of(std::declval<Callee&>()))>;
  if constexpr (std::same_as<Bare, torch::nn::Module>) {
    static_assert(kNever<Callee>,
                  "sc::compile: torch::nn::Module, the base class, has no forward: pass the module "
                  "as its own type, or in a torch::nn::AnyModule");
    return false;
  } else if constexpr (!Module<Owner>) {
    static_assert(kNever<Callee>,
                  "sc::compile takes a torch::nn::Module (publicly derived from), a holder of one "
                  "or a pointer to one: this has no named_parameters");
    return false;
  } else if constexpr (kTaken<Callee, TakeOutputs>.any()) {
    return true;
  } else if constexpr (kTaken<Bare, TakeOutputs>.any()) {
    static_assert(kNever<Callee>,
                  "sc::compile: the module is const and its forward is not: make forward const, or "
                  "pass a module that is not const");
    return false;
  } else if constexpr (kTaken<Callee, TakeAnything>.any()) {
    static_assert(
        kNever<Callee>,
        "sc::compile: forward must return tensors: an at::Tensor, or tuples, pairs, vectors, "
        "arrays, optionals, maps or plain structs of them (no base class, at most 8 members, each "
        "of one of these types), or types with a stagecraft::TensorsOf<T>::list");
    return false;
  } else {
    static_assert(
        kNever<Callee>,
        "sc::compile: forward must be public and callable with 1 to 8 tensors alone, or with "
        "tuples, pairs, arrays, optionals, vectors, maps from std::string, plain structs of "
        "tensors, or types with a stagecraft::TensorsOf<T>::make; this module has no such forward, "
        "or several that fit equally well: add one, or give its other parameters defaults");
    return false;
  }
}

/// Returns the module and its loss in their present state. The workload's functions must not
/// outlive `module`.
template <class Callee>
Workload workload_of(Callee& module,
                     const LossFunction& loss,
                     const std::vector<std::string>& names) {
  Workload workload;
  workload.forward = [&module, names](const Tensors& inputs) {
    return internal::spread<internal::TakeOutputs>(module, inputs, names);
  };
  workload.loss = loss;
  const auto& owner = internal::owner_of(module);
  ModuleState state = internal::state_of_owner(owner);
  workload.parameters = std::move(state.parameters);
  workload.buffers = std::move(state.buffers);
  if constexpr (std::is_convertible_v<decltype(&owner), const torch::nn::Module*>) {
    workload.modes = internal::modes_of(owner);
    workload.submodules = internal::submodules_of(owner);
  }
  if constexpr (std::is_convertible_v<decltype(&internal::owner_of(module)), torch::nn::Module*>) {
    workload.set_modes = [&module](const std::vector<bool>& modes) {
      internal::set_modes(internal::owner_of(module), modes);
    };
  }
  return workload;
}

/// Returns the means to run the module again. Keeps CO-2.
template <class Given, class Callee>
ModuleSource source_of(const Given& given,
                       Callee& module,
                       const LossFunction& loss,
                       const std::vector<std::string>& names,
                       const Workload& workload) {
  if constexpr (Holder<std::remove_const_t<Callee>>) {  // AnyModule: a copy holds the same module
    const auto copy = std::make_shared<std::remove_const_t<Callee>>(module);
    return {.workload = [copy, loss, names] { return internal::workload_of(*copy, loss, names); },
            .one_shape = {}};
  } else {
    KeptModule kept(internal::owner_of_life(given, module), workload.parameters);
    return {.workload =
                [&module, kept = std::move(kept), loss, names] {
                  kept.require_alive();
                  return internal::workload_of(module, loss, names);
                },
            .one_shape = {}};
  }
}

}  // namespace internal

/// Compiles `given`: a torch::nn::Module with a `forward` of tensors, a holder of one, or a pointer
/// to one. `forward` is called with one tensor per input, with all of them in one std::vector, or
/// with structures of them (structured_call.h). It returns anything that tensors_in.h takes apart;
/// the forward of a Sequential or AnyModule returns one tensor.
/// The program copies parameters and buffers, so later changes to the module's own have no effect.
/// `Trainer::state_dict()` returns the trained weights. The module itself runs again for steps of
/// other shapes (CO-2).
/// Errors: UsageArgument, CompileCapture, CompilePartition, CompileShape; each names operator and
///         stage.
/// Cost: seven forwards and two backwards of one microbatch, one more forward if stages recompute,
///       on the calling thread alone, and one copy of parameters and buffers.
template <internal::NoFile Given>
[[nodiscard]] Program compile(Given&& given, const CompileOptions& options) {
  using Callee = internal::CalleeOf<std::remove_reference_t<Given>>;
  Workload workload;
  ModuleSource source;
  if constexpr (internal::can_be_compiled<Callee>()) {
    if (internal::holds_nothing(given)) {
      internal::refuse_no_module();
    }
    Callee& module = internal::callee_of(given);
    internal::check_inputs(internal::kTaken<Callee, internal::TakeOutputs>, options.inputs.size());
    const std::vector<std::string> names = names_of(options.inputs);
    workload = internal::workload_of(module, options.loss.call(), names);
    source = internal::source_of(given, module, options.loss.call(), names, workload);
  }
  return internal::compile_workload(workload, options, std::move(source));
}

}  // namespace stagecraft
