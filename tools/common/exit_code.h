/// ExitCode is the meaning of the command's exit status.
#pragma once

#include "stagecraft/base/error.h"

namespace stagecraft::tools {

enum class ExitCode : int {
  Good = 0,
  Failed = 1,      ///< the run failed or does not fit into memory, or the checked thing is wrong
  WrongUsage = 2,  ///< wrong arguments, an unusable file, or output that cannot be written
};

/// Returns the status for a command that ends with `error`.
[[nodiscard]] ExitCode exit_code(const Error& error);

/// Returns the status of a command that a signal has ended, as a shell reports it: 128 + the
/// signal.
[[nodiscard]] ExitCode interrupted_by(int signal);

}  // namespace stagecraft::tools
