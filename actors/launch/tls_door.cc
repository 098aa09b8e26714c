#include "stagecraft/actors/launch/tls_door.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <limits>
#include <utility>
#include <vector>

#include <caf/io/middleman.hpp>
#include <caf/io/network/acceptor_impl.hpp>
#include <caf/io/network/default_multiplexer.hpp>
#include <caf/io/network/stream_impl.hpp>
#include <caf/openssl/session.hpp>
#include <openssl/err.h>

#include "stagecraft/base/log.h"

namespace stagecraft {
namespace {

using caf::io::network::default_multiplexer;
using caf::io::network::native_socket;
using caf::openssl::session_ptr;

/// Returns whether `descriptor`, the lowest free one, belongs to the spare ones.
bool is_spare(int descriptor) {
  struct rlimit limit {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return false;
  }
  const auto all =
      static_cast<std::int64_t>(std::min<rlim_t>(limit.rlim_cur, std::numeric_limits<int>::max()));
  return descriptor >= all - std::min<std::int64_t>(kSpareDescriptors, all / 2);
}

template <class T>
T found_or(const caf::expected<T>& found, T otherwise) {
  return found ? *found : otherwise;
}

/// Accepts connections from the listening socket. Never leaves one there for lack of a descriptor:
/// the loop would be notified again at once.
class AcceptPolicy {
 public:
  AcceptPolicy() : reserve_(open_reserve()) {}
  ~AcceptPolicy() { close_reserve(); }
  AcceptPolicy(const AcceptPolicy&) = delete;
  AcceptPolicy& operator=(const AcceptPolicy&) = delete;

  /// The name that CAF expects.
  bool try_accept(native_socket& result, native_socket listening) {
    result = caf::io::network::invalid_native_socket;
    int taken = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
    if (taken < 0 && (errno == EMFILE || errno == ENFILE)) {
      close_reserve();
      taken = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
      refuse(taken);
      reserve_ = open_reserve();
      return false;
    }
    if (taken >= 0 && is_spare(taken)) {
      refuse(taken);
      return false;
    }
    full_ = full_ && taken < 0;
    result = taken;
    return taken >= 0;
  }

 private:
  static int open_reserve() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }
  void close_reserve() {
    if (reserve_ >= 0) {
      close(std::exchange(reserve_, -1));
    }
  }
  void refuse(int connection) {
    if (connection >= 0) {
      close(connection);
    }
    if (!std::exchange(full_, true)) {
      log(Level::Warning, "connections refused: open files are running out", {});
    }
  }

  int reserve_;
  bool full_ = false;  ///< the warning was logged
};

/// CAF's TLS session in the form that its streams need.
class SessionPolicy {
 public:
  explicit SessionPolicy(session_ptr session) : session_(std::move(session)) {}

  caf::io::network::rw_state read_some(std::size_t& result,
                                       native_socket socket,
                                       void* into,
                                       std::size_t size) {
    ERR_clear_error();  // keeps TD-3
    return session_->read_some(result, socket, into, size);
  }
  caf::io::network::rw_state write_some(std::size_t& result,
                                        native_socket socket,
                                        const void* from,
                                        std::size_t size) {
    ERR_clear_error();
    return session_->write_some(result, socket, from, size);
  }
  bool must_read_more(native_socket socket, std::size_t threshold) {
    return session_->must_read_more(socket, threshold);
  }

 private:
  session_ptr session_;
};

/// A connection; CAF does not export its own class.
class TlsScribe final : public caf::io::scribe {
 public:
  TlsScribe(default_multiplexer& loop, native_socket socket, session_ptr session)
      : scribe(caf::io::network::conn_hdl_from_socket(socket)),
        stream_(loop, socket, std::move(session)) {}

  void configure_read(caf::io::receive_policy::config config) override {
    stream_.configure_read(config);
    if (!std::exchange(launched_, true)) {
      stream_.start(this);
      stream_.force_empty_write(this);  // the handshake may have to write first
    }
  }
  void ack_writes(bool enable) override { stream_.ack_writes(enable); }
  std::vector<char>& wr_buf() override { return stream_.wr_buf(); }
  std::vector<char>& rd_buf() override { return stream_.rd_buf(); }
  void graceful_shutdown() override {
    stream_.graceful_shutdown();
    detach(&stream_.backend(), false);
  }
  void flush() override { stream_.flush(this); }
  std::string addr() const override {
    return found_or(caf::io::network::remote_addr_of_fd(stream_.fd()), std::string());
  }
  std::uint16_t port() const override {
    return found_or<std::uint16_t>(caf::io::network::remote_port_of_fd(stream_.fd()), 0);
  }
  void add_to_loop() override { stream_.activate(this); }
  void remove_from_loop() override { stream_.passivate(); }

 private:
  bool launched_ = false;
  caf::io::network::stream_impl<SessionPolicy> stream_;
};

class TlsDoor final : public caf::io::doorman {
 public:
  TlsDoor(default_multiplexer& loop, native_socket listening)
      : doorman(caf::io::network::accept_hdl_from_socket(listening)), acceptor_(loop, listening) {}

  using doorman::new_connection;
  bool new_connection() override {
    default_multiplexer& loop = acceptor_.backend();
    const native_socket socket = acceptor_.accepted_socket();
    if (detached()) {
      close(socket);
      return false;
    }
    session_ptr session;
    try {
      caf::io::network::nonblocking(socket, true);
      ERR_clear_error();
      session = caf::openssl::make_session(parent()->system(), socket, true);
    } catch (const std::exception& error) {  // keeps TD-2
      log(Level::Warning, "a connection cannot be secured", {{"why", error.what()}});
    }
    if (session == nullptr) {
      close(socket);
      return false;
    }
    auto scribe = caf::make_counted<TlsScribe>(loop, socket, std::move(session));
    const auto handle = scribe->hdl();
    parent()->add_scribe(std::move(scribe));
    return doorman::new_connection(&loop, handle);
  }

  void graceful_shutdown() override {
    acceptor_.graceful_shutdown();
    detach(&acceptor_.backend(), false);
  }
  void launch() override { acceptor_.start(this); }
  std::string addr() const override {
    return found_or(caf::io::network::local_addr_of_fd(acceptor_.fd()), std::string());
  }
  std::uint16_t port() const override {
    return found_or<std::uint16_t>(caf::io::network::local_port_of_fd(acceptor_.fd()), 0);
  }
  void add_to_loop() override { acceptor_.activate(this); }
  void remove_from_loop() override { acceptor_.passivate(); }

 private:
  caf::io::network::acceptor_impl<AcceptPolicy> acceptor_;
};

}  // namespace

caf::expected<caf::io::doorman_ptr> open_tls_door(caf::actor_system& system,
                                                  const std::string& address,
                                                  std::uint16_t port) {
  const auto listening =
      caf::io::network::new_tcp_acceptor_impl(port, address.c_str(), /*reuse_addr=*/true);  // TD-4
  if (!listening) {
    return listening.error();
  }
  // The only kind of loop; CAF's TLS casts it in the same way.
  auto& loop = static_cast<default_multiplexer&>(system.middleman().backend());
  return caf::io::doorman_ptr(caf::make_counted<TlsDoor>(loop, *listening));
}

}  // namespace stagecraft
