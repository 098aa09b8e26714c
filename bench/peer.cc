#include "stagecraft/bench/peer.h"

#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <stdexcept>
#include <system_error>

#include <fmt/format.h>

namespace stagecraft::bench {
namespace {

constexpr std::string_view kLabel = "median step ";
constexpr std::size_t kShown = 2'000;

/// Returns one word for a shell, whatever its characters.
std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char c : word) {
    text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return text + "'";
}

std::string_view end_of(std::string_view printed) {
  return printed.substr(printed.size() - std::min(printed.size(), kShown));
}

}  // namespace

double parse_median_step(std::string_view printed) {
  const std::size_t at = printed.find(kLabel);
  double milliseconds = 0.0;
  if (at != std::string_view::npos) {
    const std::string_view number = printed.substr(at + kLabel.size());
    const auto [end, fault] =
        std::from_chars(number.data(), number.data() + number.size(), milliseconds);
    if (fault == std::errc{} && milliseconds > 0.0 &&
        number.substr(static_cast<std::size_t>(end - number.data())).starts_with(" ms")) {
      return milliseconds * 1e-3;
    }
  }
  throw std::runtime_error(fmt::format(
      "expected a line with \"{}1234.5 ms\" from the peer, found:\n{}", kLabel, end_of(printed)));
}

std::string output_of(const Peer& peer, const std::vector<std::string>& arguments) {
  std::string command = quoted(peer.python) + " " + quoted(peer.script);
  for (const std::string& argument : arguments) {
    command += " " + quoted(argument);
  }
  command += " 2>&1 < /dev/null";
  std::FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) {
    throw std::runtime_error("the peer cannot be started: " + command);
  }
  std::string printed;
  std::array<char, 4096> part;
  while (const std::size_t count = std::fread(part.data(), 1, part.size(), pipe)) {
    printed.append(part.data(), count);
  }
  if (const int status = pclose(pipe); !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    throw std::runtime_error(fmt::format("the peer has failed (exit status {}): {}\n{}",
                                         WIFEXITED(status) ? WEXITSTATUS(status) : -1,
                                         command,
                                         end_of(printed)));
  }
  return printed;
}

double median_step_of(const Peer& peer, const std::vector<std::string>& arguments) {
  return parse_median_step(output_of(peer, arguments));
}

}  // namespace stagecraft::bench
