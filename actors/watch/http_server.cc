#include "stagecraft/actors/watch/http_server.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <httplib.h>
#include <poll.h>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

using HttpTime = std::chrono::steady_clock;

/// How often a wait for a socket looks whether the server ends.
constexpr std::chrono::milliseconds kHttpLook{100};

/// BoundedStream is one connection, with the bounds of VW-1: the library itself reads lines and
/// headers of any length and number.
class BoundedStream : public httplib::Stream {
 public:
  BoundedStream(socket_t socket, const std::atomic<bool>& ending)
      : socket_(socket), ending_(ending), deadline_(HttpTime::now() + kHttpPatience) {}

  [[nodiscard]] bool is_readable() const override { return left_ > 0 && wait_for(POLLIN); }
  [[nodiscard]] bool is_writable() const override { return wait_for(POLLOUT); }

  ssize_t read(char* to, std::size_t size) override {
    if (!is_readable()) {
      return -1;
    }
    const ssize_t got = recv(socket_, to, std::min(size, left_), 0);
    left_ -= got > 0 ? static_cast<std::size_t>(got) : 0;
    return got;
  }

  ssize_t write(const char* from, std::size_t size) override {
    deadline_ = HttpTime::now() + kHttpPatience;
    std::size_t sent = 0;
    while (sent < size) {
      if (!is_writable()) {
        return -1;
      }
      const ssize_t now = send(socket_, from + sent, size - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (now < 0 && errno != EAGAIN && errno != EINTR) {
        return -1;
      }
      sent += now > 0 ? static_cast<std::size_t>(now) : 0;
    }
    return static_cast<ssize_t>(size);
  }

  void get_remote_ip_and_port(std::string&, int&) const override {}
  void get_local_ip_and_port(std::string&, int&) const override {}
  [[nodiscard]] socket_t socket() const override { return socket_; }

  /// Reads what the peer still sends, within the bounds: a connection that is closed before is
  /// reset, and the peer may lose the answer.
  void drain() {
    ::shutdown(socket_, SHUT_WR);
    char rest[1024];
    while (read(rest, sizeof rest) > 0) {
    }
  }

 private:
  [[nodiscard]] bool wait_for(short events) const {
    while (!ending_ && HttpTime::now() < deadline_) {
      pollfd one{socket_, events, 0};
      if (poll(&one, 1, static_cast<int>(kHttpLook.count())) > 0) {
        return true;
      }
    }
    return false;
  }

  const socket_t socket_;
  const std::atomic<bool>& ending_;
  HttpTime::time_point deadline_;
  std::size_t left_ = kHttpRequestBytes;
};

/// True on the accepting thread while it handles a connection beyond kHttpConnections.
thread_local bool is_surplus = false;

/// BoundedThreads answers at most kHttpConnections connections at once. It hands further ones back
/// at once, to be closed.
class BoundedThreads : public httplib::TaskQueue {
 public:
  void enqueue(std::function<void()> answer) override {
    if (inside_.fetch_add(1) >= kHttpConnections) {
      is_surplus = true;
      answer();
      is_surplus = false;
      inside_.fetch_sub(1);
      return;
    }
    threads_.enqueue([this, answer = std::move(answer)] {
      answer();
      inside_.fetch_sub(1);
    });
  }
  void shutdown() override { threads_.shutdown(); }

 private:
  std::atomic<std::size_t> inside_{0};
  httplib::ThreadPool threads_{kHttpConnections};
};

std::string only_header(const httplib::Request& request, const char* name) {
  return request.get_header_value_count(name) == 1 ? request.get_header_value(name) : "";
}

HttpRequest request_of(const httplib::Request& request) {
  constexpr std::string_view kBearer = "Bearer ";
  HttpRequest made{.method = request.method,
                   .path = request.path,
                   .host = only_header(request, "Host"),
                   .origin = request.has_header("Origin") ? request.get_header_value("Origin") : "",
                   .token = request.get_param_value("token")};
  const std::string authorization = only_header(request, "Authorization");
  if (authorization.starts_with(kBearer)) {
    made.bearer = authorization.substr(kBearer.size());
  }
  return made;
}

bool has_body(const httplib::Request& request) {
  const std::string length = request.get_header_value("Content-Length");
  return request.has_header("Transfer-Encoding") || (!length.empty() && length != "0");
}

void fill_response(HttpAnswer answer, httplib::Response& response) {
  response.status = answer.status;
  response.set_header("Cache-Control", "no-store");
  response.set_header("X-Content-Type-Options", "nosniff");
  response.set_header("X-Frame-Options", "DENY");
  // With no-referrer a browser would name no origin in the posts of our own page.
  response.set_header("Referrer-Policy", "same-origin");
  if (!answer.stream) {
    if (!answer.body.empty()) {
      response.set_content(answer.body, answer.type);
    }
    return;
  }
  response.set_chunked_content_provider(
      answer.type, [next = std::move(answer.stream)](std::size_t, httplib::DataSink& sink) {
        const std::optional<std::string> text = next();
        if (!text) {
          sink.done();
          return true;
        }
        return text->empty() || sink.write(text->data(), text->size());
      });
}

/// Listener is the library's server with our connections. All requests are answered before its
/// routing, which would read bodies.
class BoundedServer : public httplib::Server {
 public:
  explicit BoundedServer(HttpHandler handler) {
    new_task_queue = [] { return new BoundedThreads; };
    // Without the library's SO_REUSEPORT, with which two runs could share a port.
    set_socket_options([](socket_t socket) {
      const int yes = 1;
      setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    set_pre_routing_handler([handler = std::move(handler)](const httplib::Request& request,
                                                           httplib::Response& response) {
      fill_response(has_body(request) ? HttpAnswer{.status = 413} : handler(request_of(request)),
                    response);
      return HandlerResponse::Handled;
    });
  }

  void end() {
    ending_ = true;
    stop();
  }

 private:
  bool process_and_close_socket(socket_t socket) override {
    bool answered = false;
    if (!is_surplus) {
      fcntl(socket, F_SETFD, FD_CLOEXEC);
      BoundedStream stream(socket, ending_);
      bool closed = false;
      // Ranges and compression would multiply the memory of an answer.
      answered = process_request(stream, true, closed, [](httplib::Request& request) {
        request.ranges.clear();
        request.headers.erase("Accept-Encoding");
      });
      stream.drain();
    }
    ::shutdown(socket, SHUT_RDWR);
    ::close(socket);
    return answered;
  }

  std::atomic<bool> ending_{false};
};

/// Makes the server, whose constructor ignores SIGPIPE for the whole process, and undoes that:
/// BoundedStream needs it not.
std::unique_ptr<BoundedServer> made_server(HttpHandler handler) {
  struct sigaction before {};
  sigaction(SIGPIPE, nullptr, &before);
  auto server = std::make_unique<BoundedServer>(std::move(handler));
  sigaction(SIGPIPE, &before, nullptr);
  return server;
}

}  // namespace

struct HttpServer::Impl {
  std::unique_ptr<BoundedServer> server;
  int port = 0;
  std::thread thread;
};

HttpServer::HttpServer(const std::string& address, int port, HttpHandler handler)
    : impl_(std::make_unique<Impl>()) {
  impl_->server = made_server(std::move(handler));
  errno = 0;
  const bool bound = port == 0 ? (impl_->port = impl_->server->bind_to_any_port(address)) > 0
                               : impl_->server->bind_to_port(address, port);
  if (!bound) {
    throw Error(Errc::UsageArgument,
                fmt::format("cannot listen on {}:{}: {}; choose another port, or 0 for any",
                            address,
                            port,
                            errno == 0 ? "the address cannot be used" : std::strerror(errno)));
  }
  if (port != 0) {
    impl_->port = port;
  }
  impl_->thread = std::thread([server = impl_->server.get()] { server->listen_after_bind(); });
  while (!impl_->server->is_running()) {
    std::this_thread::yield();  // before that, end() would be lost
  }
}

HttpServer::~HttpServer() {
  impl_->server->end();
  impl_->thread.join();
}

int HttpServer::port() const {
  return impl_->port;
}

}  // namespace stagecraft
