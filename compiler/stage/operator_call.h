/// OperatorCall is an operator of a chunk, looked up once, with the places of the values that it
/// reads and makes.
///
/// The interpreter makes it. A run of several calls is a loop over them. Their values are in a list
/// in which each has a place.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/stack.h>

#include "stagecraft/compiler/graph/custom_function.h"
#include "stagecraft/compiler/graph/tensor_hooks.h"
#include "stagecraft/compiler/libtorch/allowed_operators.h"
#include "stagecraft/compiler/libtorch/random.h"
#include "stagecraft/compiler/stage/native_call.h"
#include "stagecraft/compiler/stage/stage_program.h"

namespace stagecraft {

class OperatorCall {
 public:
  /// Returns the place of a value among the values of a run; kAbsent for kNoValue.
  using PlaceOf = std::function<int(ValueId)>;
  static constexpr int kAbsent = -1;

  /// Looks up the operator. `device`: where it runs, in the place of the program's.
  /// Errors: CompileCapture for an operator that no loaded library registers.
  OperatorCall(const StageProgram& stage,
               const Node& node,
               const PlaceOf& place_of,
               const c10::Device& device);

  /// Runs the operator and its hooks. The caller has set autograd and autocast.
  /// Errors: CompileCapture and CompileShape if the operator's answer or results differ from those
  ///         at capture; LibTorch's own.
  void run(std::vector<at::Tensor>& values,
           torch::jit::Stack& stack,
           const RandomKey& key,
           const std::string& stage_name) const;

  /// Returns all places that the call uses.
  [[nodiscard]] std::vector<int> places() const;

  bool grad_mode = true;
  Autocast autocast;

 private:
  struct PlaceList {
    std::vector<int> places;
    bool optional_elements = false;
  };
  struct Generator {};
  using Argument = std::variant<c10::IValue, int, PlaceList, Generator>;

  [[nodiscard]] Argument argument_of(const Operand& operand, const PlaceOf& place_of) const;
  void apply_function(std::vector<at::Tensor>& values) const;
  void run_native_call(std::vector<at::Tensor>& values) const;
  [[nodiscard]] std::vector<at::Tensor> list(std::size_t argument,
                                             const std::vector<at::Tensor>& values) const;
  void store(const std::vector<at::Tensor>& results, std::vector<at::Tensor>& values) const;
  void call_operator(std::vector<at::Tensor>& values,
                     torch::jit::Stack& stack,
                     const RandomKey& key,
                     const std::string& stage_name) const;
  void push(torch::jit::Stack& stack,
            const Argument& argument,
            const std::vector<at::Tensor>& values,
            const RandomKey& key) const;
  void store(const torch::jit::Stack& stack, std::vector<at::Tensor>& values) const;
  [[noreturn]] void refuse_results(std::size_t made) const;

  c10::Device device_;
  std::optional<c10::OperatorHandle> op_;           ///< set for an operator
  std::shared_ptr<const CustomFunction> function_;  ///< set for a custom function, with three lists
                                                    ///< of arguments
  std::shared_ptr<const NativeCall> native_;  ///< set for a native stage and code of the driver
  ArgumentCheck check_ = nullptr;             ///< of the operator's arguments
  std::vector<Argument> arguments_;
  std::vector<int> results_;
  int random_index_ = -1;
  std::optional<bool> answer_;
  std::vector<std::pair<int, std::shared_ptr<const TensorHooks>>> hooks_;  ///< on results
  std::string name_;                                                       ///< for messages
};

/// Returns the hooks on a value; null if it has none.
[[nodiscard]] std::shared_ptr<const TensorHooks> hooks_on(const StageProgram& stage, ValueId id);

}  // namespace stagecraft
