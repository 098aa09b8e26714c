/// NativeCall is a native stage's module (native_stage.h), or code of the driver (on_driver.h), as
/// one rank runs it.
///
/// OperatorCall holds it in the place of an operator. It makes the module by the name in the graph,
/// and lets it work on the rank's parameters and buffers; code of the driver is in the graph.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/graph/driver_code.h"
#include "stagecraft/compiler/graph/graph.h"
#include "stagecraft/compiler/native/native_code.h"

namespace stagecraft {

class NativeCall {
 public:
  using Tensors = NativeCode::Tensors;

  /// Takes a native stage. `results`: as they were captured. Errors: those of make_native.
  NativeCall(const std::string& name, std::vector<Value> results);
  /// Takes code of the driver.
  NativeCall(const DriverCode& code, std::vector<Value> results);

  /// Runs the module's forward, joined to autograd by run_native.
  /// Errors: CompileCapture if the module's state is not of the given form; CompileShape for other
  ///         results than those captured (NV-2); those of run_native.
  [[nodiscard]] Tensors run(const Tensors& values,
                            const Tensors& parameters,
                            const Tensors& buffers,
                            bool training) const;

 private:
  /// State is the module's parameters, or its buffers, with the sizes that the maker gave them.
  struct State {
    std::vector<NamedTensor> own;
    std::vector<std::vector<std::int64_t>> sizes;
  };

  [[nodiscard]] static State without_memory(const std::vector<NamedTensor>& own);
  void take_over(const State& state, const Tensors& given, std::string_view what) const;
  void check_results(const Tensors& results) const;

  const std::string what_;
  const NativeCode code_;
  const State parameters_, buffers_;
  const std::vector<Value> results_;
};

}  // namespace stagecraft
