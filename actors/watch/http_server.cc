#include "stagecraft/actors/watch/http_server.h"

#include <sys/socket.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>

#include "stagecraft/actors/watch/http_connection.h"
#include "stagecraft/base/error.h"
#include "stagecraft/base/process/without_pipe_signal.h"
#include "stagecraft/futures/transport/shared_memory/descriptor.h"

namespace stagecraft {
namespace {

const char* status_text(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 202:
      return "Accepted";
    case 400:
      return "Bad Request";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 409:
      return "Conflict";
    case 413:
      return "Content Too Large";
    default:
      return "Unknown";
  }
}

/// Returns the head of an answer. That of a stream has no length: its end is that of the
/// connection.
std::string head_of(const HttpAnswer& answer) {
  std::string head = fmt::format("HTTP/1.1 {} {}\r\n", answer.status, status_text(answer.status));
  if (!answer.type.empty()) {
    head += fmt::format("Content-Type: {}\r\n", answer.type);
  }
  if (!answer.stream) {
    head += fmt::format("Content-Length: {}\r\n", answer.body.size());
  }
  // With no-referrer a browser would name no origin in the posts of our own page.
  return head +
         "Connection: close\r\n"
         "Cache-Control: no-store\r\n"
         "X-Content-Type-Options: nosniff\r\n"
         "X-Frame-Options: DENY\r\n"
         "Referrer-Policy: same-origin\r\n\r\n";
}

struct FreeAddresses {
  void operator()(addrinfo* found) const { freeaddrinfo(found); }
};

[[noreturn]] void refuse_to_listen(const std::string& address, int port, const char* why) {
  throw Error(Errc::UsageArgument,
              fmt::format("cannot listen on {}:{}: {}; choose another port, or 0 for any, and "
                          "an address of this host",
                          address,
                          port,
                          why));
}

/// Without SO_REUSEPORT, with which two runs could share a port.
Descriptor listen_at(const std::string& address, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
  addrinfo* found = nullptr;
  if (getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
    refuse_to_listen(address, port, "the address cannot be used");
  }
  const std::unique_ptr<addrinfo, FreeAddresses> where(found);
  Descriptor made(socket(where->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int yes = 1;
  if (!made || setsockopt(made.number(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
      bind(made.number(), where->ai_addr, where->ai_addrlen) != 0 ||
      listen(made.number(), SOMAXCONN) != 0) {
    refuse_to_listen(address, port, std::strerror(errno));
  }
  return made;
}

int port_of(const Descriptor& listener) {
  sockaddr_storage at{};
  socklen_t size = sizeof at;
  getsockname(listener.number(), reinterpret_cast<sockaddr*>(&at), &size);
  return ntohs(at.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(at).sin6_port
                                        : reinterpret_cast<const sockaddr_in&>(at).sin_port);
}

}  // namespace

class HttpServer::Impl {
 public:
  Impl(const std::string& address, int port, HttpHandler handler, const HttpTls* tls)
      : handler_(std::move(handler)),
        tls_(tls),
        listener_(listen_at(address, port)),
        port_(port_of(listener_)) {
    accepted_.reserve(kHttpConnections);
  }
  ~Impl() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) {
      thread.join();
    }
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  /// The one that accepts comes last: the handler does not run if a thread cannot be had.
  void start() {
    threads_.reserve(kHttpConnections + 1);
    for (std::size_t i = 0; i < kHttpConnections; ++i) {
      threads_.emplace_back([this] { answer_all(); });
    }
    threads_.emplace_back([this] { accept_all(); });
  }

  [[nodiscard]] int port() const { return port_; }

 private:
  void accept_all() {
    while (!ending_) {
      pollfd one{listener_.number(), POLLIN, 0};
      if (poll(&one, 1, static_cast<int>(kHttpLook.count())) <= 0) {
        continue;
      }
      Descriptor socket(
          accept4(listener_.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket) {  // out of descriptors: the connection stays, and poll would return at once
        (void)poll(nullptr, 0, static_cast<int>(kHttpLook.count()));
        continue;
      }
      const std::lock_guard lock(mutex_);
      if (inside_ < kHttpConnections) {
        ++inside_;
        accepted_.push_back(std::move(socket));  // there is room for all that are inside
        changed_.notify_one();
      }
    }
  }

  void answer_all() {
    const WithoutPipeSignal quiet;
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return ending_ || !accepted_.empty(); });
      if (ending_) {
        return;
      }
      {
        const Descriptor socket = std::move(accepted_.front());
        accepted_.erase(accepted_.begin());
        lock.unlock();
        try {
          answer(socket.number());
        } catch (...) {  // such as a lack of memory: it ends this connection, and not the run
        }
      }
      lock.lock();
      --inside_;
    }
  }

  void answer(int socket) const {
    HttpConnection connection(socket, tls_, ending_);
    const std::optional<std::string> head = connection.read_head();
    if (head && answer_head(*head, connection)) {
      connection.drain();
    }
  }

  /// Returns whether the peer has taken all of the answer.
  [[nodiscard]] bool answer_head(const std::string& head, HttpConnection& connection) const {
    const std::optional<HttpRequest> request = parse_http_request(head);
    const HttpAnswer made = request ? handler_(*request) : HttpAnswer{.status = 400};
    bool is_taken = connection.write(head_of(made)) && connection.write(made.body);
    while (is_taken && made.stream) {
      const std::optional<std::string> text = made.stream();
      if (!text) {
        break;
      }
      is_taken = connection.write(*text);
    }
    return is_taken;
  }

  const HttpHandler handler_;
  const HttpTls* const tls_;  ///< null: plain
  const Descriptor listener_;
  const int port_;
  std::atomic<bool> ending_{false};  ///< set with the mutex, read without it too
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Descriptor> accepted_;  ///< that no thread answers yet
  std::size_t inside_ = 0;            ///< accepted, and not yet answered
  std::vector<std::thread> threads_;
};

HttpServer::HttpServer(const std::string& address,
                       int port,
                       HttpHandler handler,
                       const HttpTls* tls)
    : impl_(std::make_unique<Impl>(address, port, std::move(handler), tls)) {
  impl_->start();
}

HttpServer::~HttpServer() = default;

int HttpServer::port() const {
  return impl_->port();
}

}  // namespace stagecraft
