/// Console: where a command reads and writes, and what the other end can show.
///
/// The process has one; tests make their own over string streams. Single-threaded.
/// CN-1: what is printed arrives or is an error, whatever became of the other end.
#pragma once

#include <iosfwd>
#include <string_view>

namespace stagecraft::tools {

struct Console {
  std::istream& in;
  std::ostream& out;
  std::ostream& err;
  bool out_is_terminal = false;
  bool colour = false;       ///< on a terminal, unless NO_COLOR is set or TERM is dumb
  int width = 100;           ///< columns of the terminal; of other outputs, what people read well
  bool in_is_taken = false;  ///< standard input can be read once
};

/// Returns the console of this process. From here on a pipe that nobody reads any more and a file
/// beyond `ulimit -f` are errors of the write, not the end of the process; and a standard stream
/// that was closed stays closed, whatever files are opened. Call it before anything is opened.
[[nodiscard]] Console process_console();

/// Writes to standard output and waits until it is there. Keeps CN-1.
/// Errors: UsageFile, with the reason.
void print(std::string_view text, Console& console);

}  // namespace stagecraft::tools
