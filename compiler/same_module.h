/// What a program asks of its module when that is captured once more: that it is still the same
/// one, in the modes that the capture is of.
///
/// Used by variants.cc and evaluations.cc, on the caller's thread.
#pragma once

#include <vector>

#include "stagecraft/compiler/compiled_program.h"
#include "stagecraft/compiler/workload.h"

namespace stagecraft {

/// Errors: UsageArgument for a module whose parameters or buffers are not those of `model`, or
///         whose modes have no place in it.
void require_same_module(const CompiledProgram& model, const Workload& workload);

/// While it lives the module and those below it are in these modes.
class InModes {
 public:
  /// Requires: as many modes as the workload has. Errors: UsageArgument for a module whose modes
  /// nobody can set, and which is in others.
  InModes(const Workload& workload, const std::vector<bool>& modes);
  ~InModes();
  InModes(const InModes&) = delete;
  InModes& operator=(const InModes&) = delete;

 private:
  const Workload& workload_;
  bool changed_ = false;
};

}  // namespace stagecraft
