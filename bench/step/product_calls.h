/// ProductCalls records the matrix products that a rank computes in a step, and computes them again
/// without anything else. That is the time that a step would take if it did nothing else.
///
/// StepProbe records them. Operands have the recorded shapes, strides and types, and arbitrary
/// values. Products of one kind share one set of operands, so that caches are no colder than in a
/// step.
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
  /// Records a call without keeping its tensors.
  void record(const c10::OperatorName& name, c10::ArrayRef<c10::IValue> arguments);

  [[nodiscard]] std::size_t size() const { return order_.size(); }

  /// Makes the operands. Products write into memory allocated here if the operator supports it;
  /// results of convolutions are allocated each time.
  void prepare();
  /// Computes all of them. Requires: prepare().
  void run() const;

 private:
  struct Call {
    c10::OperatorName name;
    std::vector<c10::IValue> arguments;  ///< a tensor without memory represents its shape
  };

  std::vector<Call> calls_;
  std::map<std::string, std::size_t> kinds_;  ///< index in calls_
  std::vector<std::size_t> order_;            ///< the calls of the step, as indices in calls_
};

}  // namespace stagecraft::bench
