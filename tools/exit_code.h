/// What the command tells its caller by its exit status.
#pragma once

#include "stagecraft/base/error.h"

namespace stagecraft::tools {

enum class ExitCode : int {
  Good = 0,
  Failed = 1,      ///< the run failed, or the thing checked is wrong
  WrongUsage = 2,  ///< arguments, or a file that cannot be read, parsed or does not belong to them
  Interrupted = 130,  ///< Ctrl-C, by the shell's convention: 128 + SIGINT
};

/// Returns the status for a command that ends with `error`.
[[nodiscard]] ExitCode exit_code(const Error& error);

}  // namespace stagecraft::tools
