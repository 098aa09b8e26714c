#include "stagecraft/tools/schedule/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string_view>

namespace stagecraft::tools {
namespace {

std::string_view environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string_view{} : value;
}

}  // namespace

Console process_console() {
  // Standard input may hold a million cells, and nobody here mixes it with C's stdio.
  std::ios::sync_with_stdio(false);
  Console console{std::cin, std::cout, std::cerr};
  console.out_is_terminal = isatty(STDOUT_FILENO) == 1;
  console.colour =
      console.out_is_terminal && environment("NO_COLOR").empty() && environment("TERM") != "dumb";
  winsize size{};
  if (console.out_is_terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    console.width = size.ws_col;
  }
  return console;
}

}  // namespace stagecraft::tools
