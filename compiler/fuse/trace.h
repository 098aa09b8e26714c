/// Trace: the operators that some work runs below autograd, forward or backward, as data.
///
/// Composite operators arrive taken apart and derivatives as what the engine really computes, in
/// its order, sums of gradients included. Made by fuse_plan, on example tensors.
///
/// FT-1: a value is the bytes that a tensor shows: handles on the same ones are one value, and an
///       operator that writes in place makes a value of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>

namespace stagecraft {

/// What a tensor looks like, apart from its numbers.
struct TensorFacts {
  std::vector<std::int64_t> sizes, strides;
  at::ScalarType dtype = at::kFloat;

  friend auto operator<=>(const TensorFacts&, const TensorFacts&) = default;
};

[[nodiscard]] TensorFacts facts_of(const at::Tensor& tensor);

/// By its number in Trace::values.
using TracedValue = int;
using TracedOperand = std::variant<TracedValue, std::vector<TracedValue>, c10::IValue>;

struct TracedCall {
  c10::OperatorHandle op;  ///< one that writes nothing
  std::vector<TracedOperand> operands;
  std::vector<TracedValue> results;
};

struct Trace {
  std::vector<TensorFacts> values;
  std::vector<TracedCall> calls;
};

/// "aten::mul.Tensor".
[[nodiscard]] std::string operator_name(const TracedCall& call);

/// The values that a call reads, once per use.
[[nodiscard]] std::vector<TracedValue> reads_of(const TracedCall& call);

/// Fills a trace. One thread, one at work at a time.
class Tracer {
 public:
  /// A tensor from elsewhere; what is recorded may read it.
  TracedValue add(const at::Tensor& tensor);
  /// Records what `work` runs on this thread.
  void record(const std::function<void()>& work);
  [[nodiscard]] std::optional<TracedValue> find(const at::Tensor& tensor) const;

  [[nodiscard]] const Trace& trace() const { return trace_; }
  /// Why the trace cannot stand for what ran; empty when it can.
  [[nodiscard]] const std::string& fault() const { return fault_; }

  /// Called by the dispatcher. Requires: on the thread of record().
  static void intercept(const c10::OperatorHandle& op, torch::jit::Stack* stack);

 private:
  using Bytes = std::tuple<const void*, TensorFacts>;

  void take(const c10::OperatorHandle& op,
            const std::vector<c10::IValue>& arguments,
            const torch::jit::Stack& stack);
  TracedValue make(const at::Tensor& tensor);
  [[nodiscard]] TracedOperand operand_of(const c10::IValue& argument);
  [[nodiscard]] bool is_shared(const at::Tensor& tensor) const;
  void fail(const c10::OperatorHandle& op, const std::string& why);

  Trace trace_;
  std::map<Bytes, TracedValue> known_;
  std::vector<at::Tensor> alive_;  // so that no memory is used twice
  std::string fault_;
};

}  // namespace stagecraft
