/// StatusLine: what a command is doing while it has nothing to print yet. One line on standard
/// error that is overwritten, on a terminal; elsewhere nothing.
///
/// The line is gone when the object is, so that an error or a result stands where it was.
#pragma once

#include <string_view>

#include "stagecraft/tools/console.h"

namespace stagecraft::tools {

class StatusLine {
 public:
  /// `quiet`: nothing on a terminal either, as where a program reads.
  StatusLine(Console& console, bool quiet)
      : console_(console), shows_(console.out_is_terminal && !quiet) {}
  ~StatusLine() { write(""); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  /// In the place of what was said before.
  void say(std::string_view what) { write(what); }

 private:
  void write(std::string_view text);

  Console& console_;
  const bool shows_;
};

}  // namespace stagecraft::tools
