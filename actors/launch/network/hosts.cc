#include "stagecraft/actors/launch/network/hosts.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <numeric>
#include <sstream>

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

bool is_variable(std::string_view name) {
  return !name.empty() && (name.front() < '0' || name.front() > '9') &&
         std::ranges::all_of(name, [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_';
         });
}

/// Parses one line; `line` names its place.
class HostLine {
 public:
  HostLine(std::string text, std::string line) : words_(std::move(text)), line_(std::move(line)) {}

  /// Returns nothing for a line without a host.
  [[nodiscard]] std::vector<Host> read() {
    Host host;
    if (!(words_ >> host.name) || host.name.front() == '#') {
      return {};
    }
    if (host.name.front() == '-' || host.name.find('=') != std::string::npos) {
      refuse("a host's name first", host.name);
    }
    for (std::string word; words_ >> word && word.front() != '#';) {
      take(word, host);
    }
    return {std::move(host)};
  }

 private:
  [[noreturn]] void refuse(std::string_view expected, std::string_view found) const {
    throw Error(Errc::UsageFile,
                fmt::format("{}: expected {}, found \"{}\"", line_, expected, found));
  }

  void take(const std::string& word, Host& host) const {
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    if (equals == std::string::npos || !is_variable(name)) {
      refuse("slots=N, addr=ADDRESS, worker=PATH or a variable of its environment as NAME=VALUE",
             word);
    }
    const std::string value = word.substr(equals + 1);
    if (name == "slots") {
      const auto [end, fault] =
          std::from_chars(value.data(), value.data() + value.size(), host.slots);
      if (fault != std::errc{} || end != value.data() + value.size() || host.slots < 1) {
        refuse("slots=N, a whole number of at least 1", word);
      }
    } else if (name == "addr") {
      host.address = value;
    } else if (name == "worker") {
      host.worker = value;
    } else {
      host.environment.emplace_back(name, value);
    }
  }

  std::istringstream words_;
  std::string line_;
};

}  // namespace

std::vector<Host> parse_hosts(std::string_view text, const std::string& where) {
  std::vector<Host> hosts;
  std::istringstream lines{std::string(text)};
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    const std::string place = fmt::format("{}:{}", where, ++number);
    for (Host& host : HostLine(line, place).read()) {
      if (std::ranges::find(hosts, host.name, &Host::name) != hosts.end()) {
        throw Error(Errc::UsageFile,
                    fmt::format("{}: {} stands there twice: give it more slots", place, host.name));
      }
      hosts.push_back(std::move(host));
    }
  }
  if (hosts.empty()) {
    throw Error(Errc::UsageFile,
                fmt::format("{} names no host: expected lines such as \"node-a slots=2\"", where));
  }
  return hosts;
}

std::vector<Host> read_hosts(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) {
    throw Error(Errc::UsageFile,
                fmt::format("cannot read hosts from {}: expected a file with a line for each host, "
                            "such as \"node-a slots=2\"",
                            path));
  }
  return parse_hosts(text.str(), path);
}

const Host* host_of_place(const std::vector<Host>& hosts, int place) {
  for (const Host& host : hosts) {
    if (place < host.slots) {
      return &host;
    }
    place -= host.slots;
  }
  return nullptr;
}

int slots_of(const std::vector<Host>& hosts) {
  return std::accumulate(
      hosts.begin(), hosts.end(), 0, [](int sum, const Host& host) { return sum + host.slots; });
}

}  // namespace stagecraft
