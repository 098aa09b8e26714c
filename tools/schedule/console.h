/// Console: where a scheduling command reads and writes, and what the other end can show.
///
/// The process has one; tests make their own over string streams. Single-threaded.
#pragma once

#include <iosfwd>

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

/// Returns the console of this process.
[[nodiscard]] Console process_console();

}  // namespace stagecraft::tools
