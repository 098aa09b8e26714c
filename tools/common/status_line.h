/// StatusLine shows what a command is doing while it has nothing to print yet. On a terminal it is
/// one line on standard error that is overwritten; elsewhere it prints nothing.
///
/// The destructor removes the line, so that an error or a result takes its place.
#pragma once

#include <string_view>

#include "stagecraft/tools/common/console.h"

namespace stagecraft::tools {

class StatusLine {
 public:
  /// `quiet`: print nothing on a terminal either, for example if a program reads the output.
  StatusLine(Console& console, bool quiet)
      : console_(console), shows_(console.out_is_terminal && !quiet) {}
  ~StatusLine() { write(""); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  /// Replaces the line.
  void say(std::string_view what) { write(what); }

 private:
  void write(std::string_view text);

  Console& console_;
  const bool shows_;
};

}  // namespace stagecraft::tools
