#include "stagecraft/tools/common/console.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft::tools {
namespace {

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view{} : value;
}

/// Takes the numbers of closed streams. Otherwise the next file that is opened would get such a
/// number, and prints would go into it. The placeholder can be neither printed to nor read.
void keep_closed_streams_closed() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) < 0 && errno == EBADF) {
      // Opens at the lowest free number, which is this one.
      [[maybe_unused]] const int taken =
          open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
    }
  }
}

std::string reason(int error) {
  switch (error) {
    case 0:
      return "";
    case EPIPE:
      return ": nobody reads it any more";
    case EBADF:
      return ": it is closed";
    default:
      return ": " + std::generic_category().message(error);
  }
}

/// Returns the columns of the terminal on standard output, or nothing if it is none.
std::optional<int> terminal_width() {
  winsize size{};
  const bool known = isatty(STDOUT_FILENO) == 1 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
  return known && size.ws_col > 0 ? std::optional<int>(size.ws_col) : std::nullopt;
}

}  // namespace

std::size_t help_width() {
  constexpr int kWidest = 100;
  constexpr int kWithoutTerminal = 80;
  return static_cast<std::size_t>(std::min(kWidest, terminal_width().value_or(kWithoutTerminal)));
}

Console process_console() {
  keep_closed_streams_closed();
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  // Standard input may hold a million cells, and no code here mixes it with C's stdio.
  std::ios::sync_with_stdio(false);
  Console console{std::cin, std::cout, std::cerr};
  console.out_is_terminal = isatty(STDOUT_FILENO) == 1;
  console.color =
      console.out_is_terminal && environment("NO_COLOR").empty() && environment("TERM") != "dumb";
  console.width = terminal_width().value_or(console.width);
  return console;
}

void print(std::string_view text, Console& console) {
  errno = 0;
  console.out << text << std::flush;
  if (!console.out) {
    throw Error(Errc::UsageFile, fmt::format("standard output cannot be written{}", reason(errno)));
  }
}

}  // namespace stagecraft::tools
