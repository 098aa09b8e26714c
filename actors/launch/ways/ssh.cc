#include "stagecraft/actors/launch/ways/ssh.h"

#include <charconv>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

namespace stagecraft {
namespace {

/// Quotes any text as one word of a shell.
std::string shell_word(std::string_view word) {
  std::string made = "'";
  for (const char c : word) {
    made += c == '\'' ? "'\\''" : std::string(1, c);
  }
  return made + "'";
}

}  // namespace

ChildProgram ssh_worker(const std::vector<std::string>& ssh,
                        const Host& host,
                        const std::vector<std::string>& program) {
  std::vector<std::string> words = ssh;
  const std::string path = words.empty() ? "ssh" : words.front();
  if (!words.empty()) {
    words.erase(words.begin());
  }
  words.insert(words.begin(), {"-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"});
  std::string command = fmt::format("echo {}; env", shell_word(kLetInBySsh));
  for (const auto& [name, value] : host.environment) {
    command += fmt::format(" {}={}", name, shell_word(value));
  }
  for (const std::string& word : program) {
    command += " " + shell_word(word);
  }
  // The shell stays until the end, so that a signal becomes a status, which ssh passes on.
  command += "; exit $?";
  words.insert(words.end(), {host.name, command});
  return {.path = path, .arguments = std::move(words), .input = {}, .on_line = {}};
}

std::string end_behind_ssh(const std::string& end, const std::string& host) {
  constexpr std::string_view kStatus = "ended with exit status ";
  constexpr int kOfSsh = 255, kSignals = 128;
  int status = 0;
  if (!end.starts_with(kStatus) ||
      std::from_chars(end.data() + kStatus.size(), end.data() + end.size(), status).ec !=
          std::errc{}) {
    return fmt::format("is out of reach: the ssh to {} {}", host, end);
  }
  if (status == kOfSsh) {
    return fmt::format("is out of reach: ssh could not connect to {}, or lost it", host);
  }
  if (status > kSignals) {
    return fmt::format(
        "was killed by signal {} ({})", status - kSignals, strsignal(status - kSignals));
  }
  return end;
}

}  // namespace stagecraft
