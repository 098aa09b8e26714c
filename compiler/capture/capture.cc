#include "stagecraft/compiler/capture/capture.h"

#include <algorithm>
#include <optional>

#include <ATen/core/Generator.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <fmt/format.h>
#include <torch/library.h>

#include "stagecraft/compiler/capture/operator_traits.h"
#include "stagecraft/compiler/capture/parameter_gradients.h"
#include "stagecraft/compiler/capture/recorder.h"
#include "stagecraft/compiler/capture/refusals.h"
#include "stagecraft/compiler/libtorch/foreign_failure.h"
#include "stagecraft/compiler/libtorch/program_device.h"
#include "stagecraft/compiler/libtorch/random.h"

namespace stagecraft {
namespace {

constexpr auto kRecordKey = c10::DispatchKey::TESTING_ONLY_GenericMode;
constexpr auto kInsideKey = c10::DispatchKey::TESTING_ONLY_GenericWrapper;

/// Session handles the fallbacks of this thread: it records, or only hands out generators.
class Session {
 public:
  Session(Recorder* recorder, const RandomKey& key, const Workload& workload)
      : recorder_(recorder),
        key_(key),
        tells_modes_(!workload.trains && workload.modes_in_operators) {
    current_ = this;
  }
  ~Session() { current_ = nullptr; }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  static Session* current() { return current_; }

  /// Returns the place of the last operator. When an exception is caught the markers are already
  /// closed.
  [[nodiscard]] std::string last_place() const {
    return last_marker_ + (recorder_ == nullptr ? "" : recorder_->whereabouts());
  }

  void top_level(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
    last_marker_ = under_marker();
    if (tells_modes_) {
      tell_to_evaluate(op, *stack);
    }
    const bool random = draws_random_numbers(op, *stack);
    const std::optional<std::size_t> generator = generator_argument(op);
    if (random && !generator) {
      decompose(op, stack);
      return;
    }
    int random_index = -1;
    if (random) {
      random_index = next_random_++;
      (*stack)[stack->size() - op.schema().arguments().size() + *generator] =
          make_generator(key_, random_index);
    }
    const auto call = [&] {
      const c10::impl::ExcludeDispatchKeyGuard below(kRecordKey);
      op.callBoxed(stack);
    };
    if (recorder_ == nullptr) {
      call();
      return;
    }
    try {
      record(op, stack, random_index, call);
    } catch (const Error& error) {
      throw Error(error.code(), error.message() + recorder_->whereabouts()).with(error.context());
    }
  }

  void inside(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
    if (recorder_ == nullptr) {
      return;
    }
    if (draws_random_numbers(op, stack) && !has_generator(op, stack)) {
      refuse_hidden_draw(recorder_->running(), op);
    }
    recorder_->check_hidden_read(op, stack);
  }

 private:
  /// Tells an operator whose arguments hold the mode that it evaluates. A norm without running
  /// statistics normalizes by its microbatch in both modes, so its flag stays.
  static void tell_to_evaluate(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
    const auto& arguments = op.schema().arguments();
    const std::size_t first = stack.size() - arguments.size();
    bool has_statistics = true;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const std::string& name = arguments[i].name();
      c10::IValue& value = stack[first + i];
      if (name == "running_mean") {
        has_statistics = value.isTensor() && value.toTensor().defined();
      } else if ((name == "train" || name == "training" || name == "use_input_stats") &&
                 value.isBool() && has_statistics) {
        value = false;
      } else if (name == "dropout_p" && value.isDouble()) {
        value = 0.0;
      }
    }
  }

  /// Returns whether the operator was handed a generator of ours by the operator that calls it.
  static bool has_generator(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
    const std::optional<std::size_t> position = generator_argument(op);
    return position &&
           stack[stack.size() - op.schema().arguments().size() + *position].isGenerator();
  }

  template <class Call>
  void record(const c10::OperatorHandle& op,
              const torch::jit::Stack* stack,
              int random_index,
              const Call& call) {
    if (recorder_->before(op, *stack, random_index)) {
      const c10::impl::IncludeDispatchKeyGuard inside(kInsideKey);
      call();
      recorder_->after(op, *stack);
    } else {
      call();
      recorder_->folded(op, *stack);
    }
  }

  /// Returns the key of the kernel that calls the operators inside. Factories (rand, randn_like)
  /// have no derivative, so their kernel behind autograd may be entered as well.
  static std::optional<c10::DispatchKey> way_inside(const c10::OperatorHandle& op) {
    if (op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd)) {
      return c10::DispatchKey::CompositeImplicitAutograd;
    }
    const auto& arguments = op.schema().arguments();
    const bool takes_tensors = std::ranges::any_of(arguments, [](const c10::Argument& a) {
      return a.type()->isSubtypeOf(*c10::TensorType::get());
    });
    const bool factory = !takes_tensors || op.schema().name().ends_with("_like");
    if (factory && op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutograd)) {
      return c10::DispatchKey::CompositeExplicitAutograd;
    }
    return std::nullopt;
  }

  /// Half of the random operators take no generator; the operators that they call inside do.
  static void decompose(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
    const std::optional<c10::DispatchKey> inside = way_inside(op);
    if (!inside) {
      throw Error(
          Errc::CompileCapture,
          fmt::format(
              "the random operator {}{} takes no generator, so it cannot be made to draw the same "
              "numbers in every cut; use one that does (dropout, bernoulli, normal)",
              op.schema().name(),
              under_marker()));
    }
    op.callBoxedForDispatchKey(*inside, *stack);
  }

  std::string last_marker_;
  static thread_local Session*
      current_;  // NOLINT: the dispatcher calls free functions; the session is its thread's
  Recorder* recorder_;
  RandomKey key_;
  const bool tells_modes_;
  int next_random_ = 0;
};

thread_local Session* Session::current_ = nullptr;

void record_fallback(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  if (Session* session = Session::current(); session != nullptr) {
    session->top_level(op, stack);
    return;
  }
  const c10::impl::ExcludeDispatchKeyGuard below(kRecordKey);
  op.callBoxed(stack);
}

void inside_fallback(const c10::OperatorHandle& op,
                     c10::DispatchKeySet keys,
                     torch::jit::Stack* stack) {
  if (Session* session = Session::current(); session != nullptr) {
    session->inside(op, *stack);
  }
  op.redispatchBoxed(keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kInsideKey),
                     stack);
}

/// Returns copies. Keeps CA-1 if the module writes its inputs, or the loss the labels.
Tensors copies_of(const Tensors& tensors) {
  Tensors copies;
  for (const at::Tensor& t : tensors) {
    copies.push_back(t.clone());
  }
  return copies;
}

/// Keeps CA-1.
class StateRestorer {
 public:
  explicit StateRestorer(const std::vector<NamedTensor>& buffers)
      : buffers_(buffers), random_(default_generator().get_state().clone()) {
    for (const NamedTensor& b : buffers_) {
      saved_.push_back(b.tensor.detach().clone());
    }
  }
  ~StateRestorer() {
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < saved_.size(); ++i) {
      at::Tensor buffer = buffers_[i].tensor;
      buffer.copy_(saved_[i]);
    }
    at::Generator generator = default_generator();
    generator.set_state(random_);
  }
  StateRestorer(const StateRestorer&) = delete;
  StateRestorer& operator=(const StateRestorer&) = delete;

 private:
  const DefaultRandomTurn turn_;  // first: it keeps others out until the state is back
  const std::vector<NamedTensor>& buffers_;
  Tensors saved_;
  at::Tensor random_;
};

/// Converts foreign errors into ours. Errors of ours pass through.
template <class F>
auto translated(const char* what, F&& body) {
  try {
    return body();
  } catch (const Error&) {
    throw;
  } catch (const std::exception& e) {
    throw foreign_failure(e,
                          Errc::CompileCapture,
                          fmt::format("{} failed{}", what, Session::current()->last_place()));
  }
}

EagerResult run_module(const Workload& workload, const Tensors& inputs, const Tensors& labels) {
  const at::AutoGradMode grad(workload.trains);
  const AnnotationCounter counter;
  const c10::impl::IncludeDispatchKeyGuard watch(kRecordKey);
  EagerResult result;
  result.outputs = translated("the module's forward", [&] { return workload.forward(inputs); });
  const AnnotationScope in_the_loss(kLossTag, kLossTag);  // metrics belong to the loss's stage
  if (workload.loss) {
    result.loss = translated("the loss", [&] { return workload.loss(result.outputs, labels); });
  }
  for (const auto& metric : workload.metrics) {
    result.metrics.push_back(
        translated("a metric", [&] { return metric(result.outputs, labels); }));
  }
  return result;
}

}  // namespace

Graph capture(const Workload& workload, const Tensors& given_inputs, const Tensors& given_labels) {
  if (c10::InferenceMode::is_enabled()) {
    throw Error(Errc::CompileCapture,
                "capture runs with gradients, but inference mode is on; leave its guard first");
  }
  const StateRestorer restore(workload.buffers);
  const Tensors inputs = copies_of(given_inputs);
  const Tensors labels = copies_of(given_labels);
  Recorder recorder(workload, inputs, labels);
  const Session session(&recorder, RandomKey{}, workload);
  const EagerResult result = run_module(workload, inputs, labels);
  return recorder.finish(result.outputs, result.loss, result.metrics);
}

EagerResult run_eagerly(const Workload& workload,
                        const Tensors& inputs,
                        const Tensors& labels,
                        const RandomKey& key,
                        EagerPass pass) {
  const StateRestorer restore(
      workload.buffers);  // must outlive the backward, which may have saved a buffer
  const Session session(nullptr, key, workload);
  EagerResult result = run_module(workload, copies_of(inputs), copies_of(labels));
  if (!workload.trains || pass == EagerPass::Forward) {
    return result;
  }
  Tensors parameters;
  for (const NamedTensor& parameter : workload.parameters) {
    parameters.push_back(parameter.tensor);
  }
  result.gradients = translated("the module's backward",
                                [&] { return parameter_gradients(result.loss, parameters); });
  return result;
}

}  // namespace stagecraft

// These are outside of the namespace because the macros make static objects of the dispatcher.
TORCH_LIBRARY_IMPL(_, TESTING_ONLY_GenericMode, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&stagecraft::record_fallback>());
}
TORCH_LIBRARY_IMPL(_, TESTING_ONLY_GenericWrapper, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&stagecraft::inside_fallback>());
}
