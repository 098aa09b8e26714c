/// RunOutput: standard output of a run that goes on when nobody reads it any more.
///
/// Written by Progress, looked at by the run between its steps. Single-threaded.
#pragma once

#include <string>
#include <string_view>

#include "stagecraft/tools/console.h"

namespace stagecraft::tools {

class RunOutput {
 public:
  /// `console` outlives it.
  explicit RunOutput(Console& console) : console_(console) {}

  /// Prints, unless printing has failed before.
  void write(std::string_view text);

  /// Why printing failed; empty while it has not.
  [[nodiscard]] const std::string& failure() const { return failure_; }

 private:
  Console& console_;
  std::string failure_;
};

}  // namespace stagecraft::tools
