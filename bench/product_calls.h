/// ProductCalls: the matrix products that a rank has computed in a step, to be computed again with
/// nothing around them: what a step would take if there were nothing else.
///
/// Recorded by StepProbe. Operands have the recorded shapes, strides and types, and some values;
/// products of one kind have one set of operands, so that these are no colder than a step's.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include <ATen/core/ivalue.h>
#include <ATen/core/operator_name.h>

namespace stagecraft::bench {

class ProductCalls {
 public:
  /// Keeps no tensor of the call.
  void record(const c10::OperatorName& name, c10::ArrayRef<c10::IValue> arguments);

  [[nodiscard]] std::size_t size() const { return order_.size(); }

  /// Makes the operands. Products write into memory that is here before, as far as the operator
  /// knows how: those of convolutions are allocated each time.
  void prepare();
  /// Computes all of them. Requires: prepare().
  void run() const;

 private:
  struct Call {
    c10::OperatorName name;
    std::vector<c10::IValue> arguments;  ///< a tensor without memory stands for its shape
  };

  std::vector<Call> calls_;
  std::map<std::string, std::size_t> kinds_;  ///< where in calls_
  std::vector<std::size_t> order_;            ///< of the step, in calls_
};

}  // namespace stagecraft::bench
