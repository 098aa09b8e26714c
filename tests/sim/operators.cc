/// The operators of the simulated device: LibTorch's kernels for the CPU, given to the current
/// stream.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/library.h>

#include "stagecraft/tests/sim/device.h"
#include "stagecraft/tests/sim/machine.h"
#include "stagecraft/tests/sim/memory.h"

namespace stagecraft::sim {
namespace {

using at::Tensor;
using c10::IValue;
using Values = std::vector<IValue>;
using Accesses = std::vector<Machine::Access>;

constexpr std::uint64_t kDrawn = 4;  // of a generator's offset, by each operator

const c10::impl::VirtualGuardImpl& guard_impl() {
  static const c10::impl::VirtualGuardImpl impl(kType);
  return impl;
}

Stream& current_stream(c10::Device device) {
  const c10::Stream stream = guard_impl().getStream(device);
  return *static_cast<Stream*>(guard_impl().getStreamNativeHandle(stream));
}

bool is_sim(const Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == kType;
}

Machine::Access access_to(const Tensor& tensor, bool writes) {
  std::int64_t elements = tensor.numel() == 0 ? 0 : 1;
  for (std::int64_t d = 0; d < tensor.dim() && elements > 0; ++d) {
    elements += (tensor.size(d) - 1) * tensor.stride(d);
  }
  const auto bytes = static_cast<std::size_t>(elements) * tensor.element_size();
  return {tensor.const_data_ptr(), bytes, writes};
}

void keep_wrapped_number(const Tensor& from, const Tensor& to) {
  if (from.unsafeGetTensorImpl()->is_wrapped_number()) {
    to.unsafeGetTensorImpl()->set_wrapped_number(true);
  }
}

/// Returns the same memory as the CPU's kernels see it. It owns nothing: a kernel of a device has
/// pointers too.
Tensor as_kernel_sees(const Tensor& tensor) {
  const auto options = tensor.options().device(at::kCPU).requires_grad(false);
  Tensor seen =
      tensor.numel() == 0
          ? at::empty_strided(tensor.sizes(), tensor.strides(), options)
          : at::from_blob(
                on_host(tensor.const_data_ptr()), tensor.sizes(), tensor.strides(), options);
  keep_wrapped_number(tensor, seen);
  if (tensor.is_complex()) {
    seen._set_conj(tensor.is_conj());
  }
  seen._set_neg(tensor.is_neg());
  return seen;
}

/// Returns the value with `change` applied to each of its tensors.
template <class Change>
IValue changed(const IValue& value, const Change& change) {
  if (value.isTensor()) {
    return change(value.toTensor());
  }
  if (value.isTensorList()) {
    c10::List<Tensor> tensors;
    for (const Tensor& tensor : value.toTensorVector()) {
      tensors.push_back(change(tensor));
    }
    return tensors;
  }
  if (!value.isList()) {
    return value;
  }
  auto list = value.toList().copy();  // of optional tensors, among others
  for (std::size_t i = 0; i < list.size(); ++i) {
    const IValue one = list.get(i);
    if (one.isTensor()) {
      list.set(i, change(one.toTensor()));
    }
  }
  return list;
}

std::vector<Tensor> tensors_of(const IValue& value) {
  std::vector<Tensor> tensors;
  changed(value, [&](const Tensor& tensor) {
    tensors.push_back(tensor);
    return tensor;
  });
  return tensors;
}

at::Generator cpu_generator(std::uint64_t seed) {
  return at::make_generator<at::CPUGeneratorImpl>(seed);
}

/// Call is one call of an operator: what it gets, makes and touches.
class Call {
 public:
  Call(const c10::OperatorHandle& op, Values arguments)
      : op_(op), schema_(op.schema()), arguments_(std::move(arguments)), device_(find_device()) {
    for (const auto& result : schema_.returns()) {
      makes_tensors_ = makes_tensors_ || result.alias_info() == nullptr;
    }
  }

  /// Gives the operator to the current stream. Returns its results.
  Values issue() {
    const c10::DeviceGuard guard(device_);
    take_random_numbers();
    const bool is_known_late =
        op_.hasTag(at::Tag::dynamic_output_shape) || op_.hasTag(at::Tag::data_dependent_output);
    if (is_known_late) {
      return run_now();
    }
    if (makes_tensors_) {
      facts_ = facts();
    }
    size_outputs();
    Values seen = arguments_as_kernel_sees();
    Values results = made_results();
    Machine::the().launch(
        current_stream(device_),
        schema_.name(),
        accesses_,
        [op = op_, seen = std::move(seen), made = made_, sized = sized_]() mutable {
          run_kernel(op, seen, made, sized);
        });
    return results;
  }

 private:
  using Copies = std::vector<std::pair<Tensor, Tensor>>;  ///< from, to

  c10::Device find_device() const {
    std::optional<c10::Device> device;
    for (const IValue& value : arguments_) {
      if (value.isDevice() && value.toDevice().type() == kType) {
        device = value.toDevice();
      }
      for (const Tensor& tensor : tensors_of(value)) {
        if (is_sim(tensor)) {
          TORCH_CHECK(!device || *device == tensor.device(),
                      schema_.name(),
                      ": tensors are on ",
                      *device,
                      " and on ",
                      tensor.device());
          device = tensor.device();
        } else {
          TORCH_CHECK(!tensor.defined() || tensor.dim() == 0,
                      schema_.name(),
                      ": a tensor of the CPU is among those of a device");
        }
      }
    }
    TORCH_CHECK(device, schema_.name(), ": no tensor is on a device");
    return *device;
  }

  bool is_written(std::size_t argument) const {
    return schema_.arguments()[argument].alias_info() != nullptr;
  }

  /// Keeps SO-3.
  void take_random_numbers() {
    const auto named = std::ranges::find_if(
        schema_.arguments(), [](const auto& one) { return one.name() == "generator"; });
    generator_ = static_cast<std::size_t>(named - schema_.arguments().begin());
    if (!op_.hasTag(at::Tag::nondeterministic_seeded)) {
      return;
    }
    TORCH_CHECK(generator_ < arguments_.size(),
                schema_.name(),
                " draws random numbers and takes no generator");
    at::Generator from = arguments_[generator_].isGenerator()
                             ? arguments_[generator_].toGenerator()
                             : at::globalContext().defaultGenerator(device_);
    const std::scoped_lock lock(from.mutex());
    seed_ = from.current_seed() + from.get_offset() * 0x9e3779b97f4a7c15U;  // at first, as the CPU
    from.set_offset(from.get_offset() + kDrawn);
  }

  /// Returns what the call makes, without its numbers (SO-1).
  Values facts() const {
    const bool has_meta = op_.hasKernelForDispatchKey(c10::DispatchKey::Meta);
    const c10::Device place = has_meta ? at::kMeta : at::kCPU;
    Values stack;
    for (const IValue& value : arguments_) {
      if (value.isDevice()) {
        stack.emplace_back(place);
      } else if (value.isGenerator()) {
        stack.push_back(has_meta ? IValue() : IValue(cpu_generator(1)));
      } else {
        stack.push_back(changed(value, [&](const Tensor& tensor) -> Tensor {
          if (!is_sim(tensor)) {
            return tensor;
          }
          Tensor like = at::empty_strided(tensor.sizes(),
                                          tensor.strides(),
                                          tensor.options().device(place).requires_grad(false));
          if (!has_meta) {
            like.zero_();
          }
          keep_wrapped_number(tensor, like);
          return like;
        }));
      }
    }
    op_.callBoxed(&stack);
    return stack;
  }

  /// Gives the empty outputs of an out variant their sizes.
  void size_outputs() {
    for (std::size_t i = 0; i < arguments_.size() && !makes_tensors_; ++i) {
      const auto& argument = schema_.arguments()[i];
      TORCH_CHECK(argument.alias_info() == nullptr || argument.alias_info()->isWrite(),
                  schema_.name(),
                  " makes a view, which operators.cc does not register");
      if (argument.is_out() && arguments_[i].isTensor() && arguments_[i].toTensor().numel() == 0) {
        facts_ = facts_.empty() ? facts() : facts_;
        if (facts_.size() == 1 && facts_[0].isTensor()) {
          (void)arguments_[i].toTensor().resize_(facts_[0].toTensor().sizes());
        }
      }
    }
  }

  Values arguments_as_kernel_sees() {
    Values seen;
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
      if (arguments_[i].isDevice()) {
        seen.emplace_back(c10::Device(at::kCPU));
      } else if (i == generator_) {
        seen.push_back(seed_ ? IValue(cpu_generator(*seed_)) : IValue());
      } else {
        seen.push_back(
            changed(arguments_[i], [&](const Tensor& tensor) { return as_argument(tensor, i); }));
      }
    }
    return seen;
  }

  Tensor as_argument(const Tensor& tensor, std::size_t argument) {
    if (!is_sim(tensor)) {
      return tensor.defined() ? tensor.clone() : tensor;  // a number, as it is now
    }
    accesses_.push_back(access_to(tensor, is_written(argument)));
    const Tensor seen = as_kernel_sees(tensor);
    if (!schema_.arguments()[argument].is_out()) {
      return seen;
    }
    const Tensor own = at::empty({0}, seen.options());  // some kernels resize even a right one
    sized_.emplace_back(own, seen);
    return own;
  }

  Values made_results() {
    Values results;
    std::vector<std::size_t> written;
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
      if (is_written(i)) {
        written.push_back(i);
      }
    }
    std::size_t next = 0;
    for (std::size_t r = 0; r < schema_.returns().size(); ++r) {
      if (schema_.returns()[r].alias_info() != nullptr) {
        results.push_back(arguments_[written.at(next++)]);
        made_.emplace_back();
        continue;
      }
      results.push_back(changed(facts_.at(r), [&](const Tensor& like) -> Tensor {
        return like.defined()
                   ? at::empty_strided(like.sizes(), like.strides(), like.options().device(device_))
                   : like;
      }));
      made_.push_back(changed(results.back(), [&](const Tensor& made) -> Tensor {
        if (!made.defined()) {
          return made;
        }
        accesses_.push_back(access_to(made, /*writes=*/true));
        return as_kernel_sees(made);
      }));
    }
    return results;
  }

  /// Keeps SO-2.
  Values run_now() {
    Stream& stream = current_stream(device_);
    Values values = arguments_as_kernel_sees();
    TORCH_CHECK(sized_.empty(), schema_.name(), " sizes an output by numbers");
    Machine::the().launch(stream, schema_.name(), accesses_, [] {});
    Machine::the().synchronize(stream);
    op_.callBoxed(&values);
    for (IValue& value : values) {
      value = changed(value, [&](const Tensor& tensor) {
        return tensor.defined() ? tensor.to(device_) : tensor;
      });
    }
    return values;
  }

  static void run_kernel(const c10::OperatorHandle& op,
                         Values& values,
                         const Values& made,
                         const Copies& sized) {
    const at::AutoDispatchBelowADInplaceOrView below;
    op.callBoxed(&values);
    for (const auto& [from, to] : sized) {
      to.copy_(from);
    }
    for (std::size_t r = 0; r < made.size(); ++r) {
      const std::vector<Tensor> from = tensors_of(values.at(r));
      const std::vector<Tensor> to = tensors_of(made[r]);
      for (std::size_t i = 0; i < to.size(); ++i) {
        if (to[i].defined()) {
          to[i].copy_(from.at(i));
        }
      }
    }
  }

  c10::OperatorHandle op_;
  const c10::FunctionSchema& schema_;
  Values arguments_;
  c10::Device device_;
  bool makes_tensors_ = false;  ///< rather than to write into arguments only
  std::size_t generator_ = 0;   ///< which argument it is; after the last if there is none
  std::optional<std::uint64_t> seed_;
  Values facts_;
  Values made_;   ///< new results as the kernel sees them; nothing for arguments
  Copies sized_;  ///< outputs that a kernel may size
  Accesses accesses_;
};

void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const at::AutoDispatchBelowADInplaceOrView below;
  const std::size_t count = op.schema().arguments().size();
  Values arguments(stack->end() - static_cast<std::ptrdiff_t>(count), stack->end());
  torch::jit::drop(*stack, count);
  for (IValue& result : Call(op, std::move(arguments)).issue()) {
    stack->push_back(std::move(result));
  }
}

/// LibTorch asks devices outside of its tree for these in the place of convolution.
void convolution(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  constexpr std::ptrdiff_t kAfterBias = 7;
  static const auto forward =
      c10::Dispatcher::singleton().findSchemaOrThrow("aten::convolution", "");
  static const auto backward =
      c10::Dispatcher::singleton().findSchemaOrThrow("aten::convolution_backward", "");
  const bool goes_back = op.schema().name() == "aten::convolution_backward_overrideable";
  if (goes_back) {
    stack->insert(stack->end() - kAfterBias, IValue());  // the sizes of a bias
  }
  fallback(goes_back ? backward : forward, stack);
}

// ---- memory, views and copies -------------------------------------------------------------------

Tensor empty(at::IntArrayRef size,
             std::optional<at::ScalarType> type,
             std::optional<at::Layout> /*layout*/,
             std::optional<at::Device> device,
             std::optional<bool> /*pinned*/,
             std::optional<at::MemoryFormat> format) {
  const c10::DeviceGuard guard(*device);
  return at::detail::empty_generic(size,
                                   at::GetAllocator(kType),
                                   c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                   at::dtype_or_default(type),
                                   format);
}

Tensor empty_strided(at::IntArrayRef size,
                     at::IntArrayRef stride,
                     std::optional<at::ScalarType> type,
                     std::optional<at::Layout> /*layout*/,
                     std::optional<at::Device> device,
                     std::optional<bool> /*pinned*/) {
  const c10::DeviceGuard guard(*device);
  return at::detail::empty_strided_generic(size,
                                           stride,
                                           at::GetAllocator(kType),
                                           c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                           at::dtype_or_default(type));
}

/// Copies on the stream of the source's device. As CUDA's copies do, one between two devices is
/// ordered with the current streams of both.
Tensor copy_from(const Tensor& from, const Tensor& to, bool non_blocking) {
  const at::AutoDispatchBelowADInplaceOrView below;
  const c10::Device device = is_sim(from) ? from.device() : to.device();
  const c10::Stream stream = guard_impl().getStream(device);
  const bool between_devices = is_sim(from) && is_sim(to) && from.device() != to.device();
  if (between_devices) {
    c10::Event ready(kType);
    ready.record(guard_impl().getStream(to.device()));
    ready.block(stream);
  }
  Accesses accesses;
  const auto side = [&](const Tensor& tensor, bool writes) {
    if (!is_sim(tensor)) {
      if (writes || tensor.is_pinned()) {
        return tensor.detach();
      }
      Machine::the().count_pageable_copy();
      return tensor.clone();  // it is copied at once
    }
    accesses.push_back(access_to(tensor, writes));
    return as_kernel_sees(tensor);
  };
  const Tensor source = side(from, false);
  const Tensor target = side(to, true);
  Machine::the().launch(current_stream(device), "copy_", accesses, [source, target] {
    const at::AutoDispatchBelowADInplaceOrView in_kernel;
    target.copy_(source);
  });
  if (between_devices) {
    c10::Event done(kType);
    done.record(stream);
    done.block(guard_impl().getStream(to.device()));
  }
  if (!is_sim(to) || (!non_blocking && !is_sim(from))) {
    guard_impl().synchronizeStream(stream);
  }
  return to;
}

at::Scalar item(const Tensor& tensor) {
  Stream& stream = current_stream(tensor.device());
  Machine::the().launch(stream, "item", {access_to(tensor, false)}, [] {});
  Machine::the().synchronize(stream);
  return as_kernel_sees(tensor).item();
}

Tensor view(const Tensor& tensor, at::IntArrayRef size) {
  return at::native::view(tensor, size);
}

Tensor reshape_alias(const Tensor& tensor, at::IntArrayRef size, at::IntArrayRef stride) {
  return at::native::_reshape_alias(tensor, size, stride);
}

Tensor as_strided(const Tensor& tensor,
                  at::IntArrayRef size,
                  at::IntArrayRef stride,
                  std::optional<std::int64_t> offset) {
  return at::native::as_strided_tensorimpl(tensor, size, stride, offset);
}

void record_stream(Tensor& tensor, at::Stream stream) {
  guard_impl().recordDataPtrOnStream(tensor.storage().data_ptr(), stream);
}

const Tensor& resize(const Tensor& tensor,
                     at::IntArrayRef size,
                     std::optional<at::MemoryFormat> format) {
  const c10::DeviceGuard guard(tensor.device());
  return at::native::resize_(tensor, size, format);
}

}  // namespace

// LibTorch's fallbacks for lazily conjugated tensors clone by _copy_from what it is to copy.
TORCH_LIBRARY_IMPL(aten, Conjugate, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(aten, Negative, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  // LibTorch composes these of others for a device without a kernel, which round otherwise.
  for (const char* name : {"native_layer_norm",
                           "native_layer_norm_backward",
                           "native_group_norm",
                           "silu_backward",
                           "mish_backward"}) {
    m.impl(name, torch::CppFunction::makeFromBoxedFunction<&fallback>());
  }
  m.impl("convolution_overrideable", torch::CppFunction::makeFromBoxedFunction<&convolution>());
  m.impl("convolution_backward_overrideable",
         torch::CppFunction::makeFromBoxedFunction<&convolution>());
  m.impl("empty.memory_format", empty);
  m.impl("empty_strided", empty_strided);
  m.impl("_copy_from", copy_from);
  m.impl("_local_scalar_dense", item);
  m.impl("view", view);
  m.impl("view.dtype", at::native::view_dtype);
  m.impl("_reshape_alias", reshape_alias);
  m.impl("as_strided", as_strided);
  m.impl("unfold", at::native::unfold);
  m.impl("view_as_real", at::native::view_as_real);
  m.impl("view_as_complex", at::native::view_as_complex);
  m.impl("resize_", resize);
  m.impl("record_stream", record_stream);
  m.impl("set_.source_Storage", static_cast<Tensor& (*)(Tensor&, at::Storage)>(at::native::set_));
  m.impl("set_.source_Storage_storage_offset", at::native::set_storage_cpu_);
  m.impl("set_.source_Tensor", at::native::set_tensor_);
}

}  // namespace stagecraft::sim
