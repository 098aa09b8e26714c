/// RunOutput is the standard output of a run that continues when its reader has gone.
///
/// Progress writes it; the run checks it between its steps. Single-threaded.
#pragma once

#include <string>
#include <string_view>

#include "stagecraft/tools/common/console.h"

namespace stagecraft::tools {

class RunOutput {
 public:
  /// `console` must outlive it.
  explicit RunOutput(Console& console) : console_(console) {}

  /// Prints, unless printing has failed before.
  void write(std::string_view text);

  /// Returns the reason why printing failed; empty if it has not.
  [[nodiscard]] const std::string& failure() const { return failure_; }

 private:
  Console& console_;
  std::string failure_;
};

}  // namespace stagecraft::tools
