/// same_module checks, when a module is captured again, that it is still the one from which the
/// program was compiled, and sets the modes for the capture.
///
/// shape_captures.cc and evaluations.cc use it, on the caller's thread.
#pragma once

#include <vector>

#include "stagecraft/compiler/module/workload.h"
#include "stagecraft/compiler/program/compiled_program.h"

namespace stagecraft {

/// Checks the module.
/// Errors: UsageArgument for a module whose parameters or buffers are not those of `model`, or
/// whose modes do not correspond to the model's.
void require_same_module(const CompiledProgram& model, const Workload& workload);

/// InModes keeps the module and those below it in the given modes while it lives.
class InModes {
 public:
  /// Requires: as many modes as the workload has. Errors: UsageArgument for a module that is in
  ///           other modes and whose modes cannot be set.
  InModes(const Workload& workload, const std::vector<bool>& modes);
  ~InModes();
  InModes(const InModes&) = delete;
  InModes& operator=(const InModes&) = delete;

 private:
  const Workload& workload_;
  bool changed_ = false;
};

}  // namespace stagecraft
