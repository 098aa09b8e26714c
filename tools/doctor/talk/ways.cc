#include "stagecraft/tools/doctor/talk/ways.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>

#include <poll.h>

#include "stagecraft/tools/doctor/facts/digits.h"

namespace stagecraft::tools {
namespace {

/// One connection: connects, then reads the door's token.
class Attempt {
 public:
  explicit Attempt(const Way& way) : token_(way.door.token) {
    const SocketAddress there = address_of_digits(way.door.address, way.door.port);
    if (!there) {
      fault_ = "that is no address in digits";
      return;
    }
    socket_ = socket(there->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (socket_ < 0 ||
        (connect(socket_, there->ai_addr, there->ai_addrlen) != 0 && errno != EINPROGRESS)) {
      fault_ = lower_case(strerror(errno));
    }
  }
  ~Attempt() {
    if (socket_ >= 0) {
      close(socket_);
    }
  }
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  [[nodiscard]] bool is_over() const { return fault_.has_value(); }
  [[nodiscard]] std::string fault() const {
    return fault_.value_or(connected_ ? "it connects, and then nothing comes"
                                      : "connection timed out");
  }
  /// Returns the event to wait for; none once it is over.
  [[nodiscard]] pollfd awaited() const {
    const int events = connected_ ? POLLIN : POLLOUT;
    return {is_over() ? -1 : socket_, static_cast<short>(events), 0};
  }
  /// Called when that event has come.
  void go_on() {
    if (connected_) {
      read_token();
      return;
    }
    int error = 0;
    socklen_t size = sizeof(error);
    getsockopt(socket_, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error != 0) {
      fault_ = lower_case(strerror(error));
    }
    connected_ = true;
  }

 private:
  static std::string lower_case(std::string text) {
    text.front() = static_cast<char>(std::tolower(static_cast<unsigned char>(text.front())));
    return text;
  }

  void read_token() {
    std::array<char, 64> part{};
    const auto got = read(socket_, part.data(), part.size());
    if (got > 0) {
      read_.append(part.data(), static_cast<std::size_t>(got));
    } else if (got == 0 || errno != EAGAIN) {
      fault_ = got == 0 ? "somebody else answers there" : lower_case(strerror(errno));
    }
    if (read_ == token_) {
      fault_ = "";
    } else if (read_.size() >= token_.size()) {
      fault_ = "somebody else answers there";
    }
  }

  const std::string token_;
  std::string read_;
  int socket_ = -1;
  bool connected_ = false;
  std::optional<std::string> fault_;  ///< known once it is over
};

using Attempts = std::vector<std::unique_ptr<Attempt>>;

void run(const Attempts& attempts, std::chrono::steady_clock::time_point deadline) {
  while (!std::ranges::all_of(attempts, [](const auto& one) { return one->is_over(); })) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    std::vector<pollfd> awaited;
    for (const auto& attempt : attempts) {
      awaited.push_back(attempt->awaited());
    }
    if (left.count() <= 0 ||
        poll(awaited.data(), awaited.size(), static_cast<int>(left.count())) == 0) {
      return;
    }
    for (std::size_t i = 0; i < attempts.size(); ++i) {
      if (awaited[i].revents != 0) {
        attempts[i]->go_on();
      }
    }
  }
}

}  // namespace

std::vector<TriedWay> try_ways(const std::vector<Way>& ways, std::chrono::milliseconds patience) {
  Attempts attempts;
  for (const Way& way : ways) {
    attempts.push_back(std::make_unique<Attempt>(way));
  }
  run(attempts, std::chrono::steady_clock::now() + patience);
  std::vector<TriedWay> tried;
  for (std::size_t i = 0; i < ways.size(); ++i) {
    tried.push_back({ways[i], attempts[i]->fault()});
  }
  return tried;
}

}  // namespace stagecraft::tools
