#include "stagecraft/actors/launch/port/tls_door.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include <caf/actor_system_config.hpp>
#include <caf/io/middleman.hpp>
#include <caf/io/network/acceptor_impl.hpp>
#include <caf/io/network/default_multiplexer.hpp>
#include <caf/io/network/stream_impl.hpp>

#include "stagecraft/actors/launch/port/file_limit.h"
#include "stagecraft/actors/launch/port/tls_session.h"
#include "stagecraft/base/log.h"

namespace stagecraft {
namespace {

using caf::io::network::default_multiplexer;
using caf::io::network::native_socket;

/// Returns whether `descriptor`, the lowest free one, is among the last, which outsiders must not
/// take.
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

/// Accepts connections from the listening socket. Never leaves one there for want of a descriptor:
/// the loop would report it again at once.
class AcceptPolicy {
 public:
  AcceptPolicy() : reserve_(open_reserve()) {}
  ~AcceptPolicy() { close_reserve(); }
  AcceptPolicy(const AcceptPolicy&) = delete;
  AcceptPolicy& operator=(const AcceptPolicy&) = delete;

  /// CAF requires this name.
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
  bool full_ = false;  ///< and a warning was logged
};

/// A connection. CAF's own class is private to it.
class TlsScribe final : public caf::io::scribe {
 public:
  TlsScribe(default_multiplexer& loop,
            native_socket socket,
            TlsHandle session,
            std::shared_ptr<WaitingSockets> waiting,
            NodeGuard guard)
      : scribe(caf::io::network::conn_hdl_from_socket(socket)),
        stream_(loop, socket, std::move(session), socket, std::move(waiting), std::move(guard)) {}

  void configure_read(caf::io::receive_policy::config config) override {
    stream_.configure_read(config);
    if (!std::exchange(launched_, true)) {
      stream_.start(this);
      stream_.force_empty_write(this);  // the handshake may have bytes to send
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
  caf::io::network::stream_impl<TlsSession> stream_;
};

class TlsDoor final : public caf::io::doorman {
 public:
  TlsDoor(default_multiplexer& loop, native_socket listening, TlsContext context, NodeGuard guard)
      : doorman(caf::io::network::accept_hdl_from_socket(listening)),
        context_(std::move(context)),
        guard_(std::move(guard)),
        acceptor_(loop, listening) {}

  using doorman::new_connection;
  bool new_connection() override {
    default_multiplexer& loop = acceptor_.backend();
    const native_socket socket = acceptor_.accepted_socket();
    if (detached()) {
      close(socket);
      return false;
    }
    TlsHandle session(nullptr, nullptr);
    try {
      caf::io::network::nonblocking(socket, true);
      session = context_.handle(socket);
    } catch (const std::exception& error) {  // keeps TD-2
      log(Level::Warning, "a connection cannot be secured", {{"why", error.what()}});
      close(socket);
      return false;
    }
    auto scribe = caf::make_counted<TlsScribe>(loop, socket, std::move(session), waiting_, guard_);
    end_oldest();
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
  /// Keeps TD-3. A stream ends when the loop reads the end of its socket.
  void end_oldest() const {
    auto oldest = waiting_->begin();
    for (std::size_t left = waiting_->size(); left > kMostWaiting; --left) {
      static_cast<void>(shutdown(*oldest++, SHUT_RDWR));
    }
  }

  TlsContext context_;
  const NodeGuard guard_;  ///< of a new connection
  const std::shared_ptr<WaitingSockets> waiting_ = std::make_shared<WaitingSockets>();
  caf::io::network::acceptor_impl<AcceptPolicy> acceptor_;
};

}  // namespace

caf::expected<caf::io::doorman_ptr> open_tls_door(caf::actor_system& system,
                                                  const std::string& address,
                                                  std::uint16_t port,
                                                  std::shared_ptr<PeerNodes> nodes) {
  const caf::actor_system_config& config = system.config();
  TlsContext context(config.openssl_certificate, config.openssl_key, config.openssl_cafile);
  const auto listening =
      caf::io::network::new_tcp_acceptor_impl(port, address.c_str(), /*reuse_addr=*/true);  // TD-4
  if (!listening) {
    return listening.error();
  }
  // CAF has no other kind; its own TLS casts likewise.
  auto& loop = static_cast<default_multiplexer&>(system.middleman().backend());
  return caf::io::doorman_ptr(caf::make_counted<TlsDoor>(
      loop, *listening, std::move(context), NodeGuard(system.node(), std::move(nodes))));
}

}  // namespace stagecraft
