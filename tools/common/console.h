/// Console holds the input and output of a command, and the abilities of the terminal.
///
/// The process has one; tests make their own over string streams. Single-threaded.
/// CN-1: printed text arrives or is an error, in any state of the reader.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string_view>

namespace stagecraft::tools {

struct Console {
  std::istream& in;
  std::ostream& out;
  std::ostream& err;
  bool out_is_terminal = false;
  /// On a terminal, unless NO_COLOR is set or TERM is dumb; --color overrules (color_option.h).
  bool color = false;
  int width = 100;           ///< columns of the terminal; for other outputs, a readable width
  bool in_is_taken = false;  ///< standard input can be read once
};

/// Returns the columns of help: those of the terminal on standard output, at most 100, because
/// longer lines read badly; 80 for another output.
[[nodiscard]] std::size_t help_width();

/// Returns the console of this process. After this call, a write to a pipe without a reader or to a
/// file beyond `ulimit -f` fails with an error and does not end the process. A standard stream that
/// was closed stays closed when files are opened. Call it before anything is opened.
[[nodiscard]] Console process_console();

/// Writes to standard output and waits until the text is written. Keeps CN-1.
/// Errors: UsageFile, with the reason.
void print(std::string_view text, Console& console);

}  // namespace stagecraft::tools
