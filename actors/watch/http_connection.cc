#include "stagecraft/actors/watch/http_connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>

namespace stagecraft {
namespace {

using HttpTime = std::chrono::steady_clock;

constexpr std::string_view kHeadEnd = "\r\n\r\n";

bool is_only_early(ssize_t result) {
  return result < 0 && (errno == EAGAIN || errno == EINTR);
}

}  // namespace

HttpConnection::HttpConnection(int socket, const HttpTls* tls, const std::atomic<bool>& ending)
    : socket_(socket),
      session_(tls != nullptr ? tls->session(socket) : HttpTlsSession(nullptr, &SSL_free)),
      ending_(ending) {}

std::optional<std::string> HttpConnection::read_head() {
  const Time deadline = HttpTime::now() + kHttpPatience;
  std::string head;
  while (left_ > 0) {
    char some[1024];
    const std::size_t got = read(some, sizeof some, deadline);
    if (got == 0) {
      return std::nullopt;
    }
    const std::size_t begin = head.size() - std::min(head.size(), kHeadEnd.size() - 1);
    head.append(some, got);
    if (const std::size_t end = head.find(kHeadEnd, begin); end != std::string::npos) {
      return head.substr(0, end + kHeadEnd.size());
    }
  }
  return head;
}

bool HttpConnection::write(std::string_view text) {
  const Time last = HttpTime::now() + kHttpLongest;
  while (!text.empty()) {
    const std::size_t sent = until_done([&] { return try_to_write(text); },
                                        std::min(HttpTime::now() + kHttpPatience, last));
    if (sent == 0) {
      return false;
    }
    text.remove_prefix(sent);
  }
  return true;
}

void HttpConnection::drain() {
  const Time deadline = HttpTime::now() + kHttpPatience;
  (void)until_done([&] { return try_to_finish(); }, deadline);
  char rest[1024];
  while (read(rest, sizeof rest, deadline) > 0) {
  }
}

HttpConnection::Attempt HttpConnection::try_to_read(char* to, std::size_t size) {
  if (session_ != nullptr) {
    ERR_clear_error();
    std::size_t got = 0;
    const int result = SSL_read_ex(session_.get(), to, size, &got);
    return attempt_of(result, got);
  }
  const ssize_t got = recv(socket_, to, size, 0);
  return is_only_early(got) ? Attempt{.waits_for = POLLIN}
                            : Attempt{.bytes = static_cast<std::size_t>(std::max<ssize_t>(got, 0))};
}

HttpConnection::Attempt HttpConnection::try_to_write(std::string_view text) {
  if (session_ != nullptr) {
    ERR_clear_error();
    std::size_t sent = 0;
    const int result = SSL_write_ex(session_.get(), text.data(), text.size(), &sent);
    return attempt_of(result, sent);
  }
  const ssize_t sent = send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
  return is_only_early(sent)
             ? Attempt{.waits_for = POLLOUT}
             : Attempt{.bytes = static_cast<std::size_t>(std::max<ssize_t>(sent, 0))};
}

HttpConnection::Attempt HttpConnection::try_to_finish() {
  if (session_ != nullptr) {
    ERR_clear_error();
    const int result = SSL_shutdown(session_.get());
    if (const Attempt told = attempt_of(result, 0); result < 0 && told.waits_for != 0) {
      return told;
    }
  }
  ::shutdown(socket_, SHUT_WR);
  return {};
}

HttpConnection::Attempt HttpConnection::attempt_of(int result, std::size_t bytes) const {
  if (result > 0) {
    return {.bytes = bytes};
  }
  switch (SSL_get_error(session_.get(), result)) {
    case SSL_ERROR_WANT_READ:
      return {.waits_for = POLLIN};
    case SSL_ERROR_WANT_WRITE:
      return {.waits_for = POLLOUT};
    default:
      return {};
  }
}

template <class Try>
std::size_t HttpConnection::until_done(Try&& attempt, Time deadline) const {
  while (!ending_ && HttpTime::now() < deadline) {
    const Attempt made = attempt();
    if (made.waits_for == 0) {
      return made.bytes;
    }
    pollfd one{socket_, made.waits_for, 0};
    (void)poll(&one, 1, static_cast<int>(kHttpLook.count()));
  }
  return 0;
}

std::size_t HttpConnection::read(char* to, std::size_t size, Time deadline) {
  const std::size_t got =
      left_ == 0 ? 0 : until_done([&] { return try_to_read(to, std::min(size, left_)); }, deadline);
  left_ -= got;
  return got;
}

}  // namespace stagecraft
