#include "stagecraft/futures/transport/zmq/sockets.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <random>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <zmq.hpp>

#include "stagecraft/base/check.h"

namespace stagecraft {

struct PortSockets::Waiting {
  Waiting() : wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    SC_CHECK(wake >= 0, fmt::format("eventfd failed: {}", std::strerror(errno)));
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  ~Waiting() { ::close(wake); }

  const int wake;
  std::vector<zmq_pollitem_t> polled;  ///< kept to reuse its memory
};

namespace {

/// The number of messages in ZeroMQ's own queue to or from one peer. It is small because a small
/// tensor waits for them.
constexpr int kHighWater = 16;
/// CURVE adds a few bytes to each part.
constexpr std::int64_t kEnvelope = 4096;
/// The longest time of a handshake, including the wait for a key that is admitted late.
constexpr int kHandshakeMs = 10'000;
constexpr int kMostSockets = 16384;

/// Checks the form of the address.
bool names_a_port(std::string_view endpoint) {
  constexpr std::string_view kTcp = "tcp://", kLocal = "ipc://";
  if (endpoint.starts_with(kTcp)) {
    const std::size_t colon = endpoint.rfind(':');
    const std::string_view port = endpoint.substr(colon + 1);
    return colon > kTcp.size() && !port.empty() &&
           port.find_first_not_of("0123456789") == std::string_view::npos;
  }
  return endpoint.starts_with(kLocal) && endpoint.size() > kLocal.size();
}

bool is_public_key(const std::string& key) {
  std::array<std::uint8_t, 32> binary{};
  std::array<char, 41> again{};
  return key.size() == 40 && zmq_z85_decode(binary.data(), key.c_str()) != nullptr &&
         zmq_z85_encode(again.data(), binary.data(), binary.size()) == key;
}

std::string random_name() {
  std::random_device device;
  return fmt::format("stagecraft-{}-{:08x}{:08x}", getpid(), device(), device());
}

void keep_quiet(zmq::socket_t& socket, const std::string& endpoint) {
  socket.set(zmq::sockopt::linger, 0);
  socket.set(zmq::sockopt::sndhwm, kHighWater);
  socket.set(zmq::sockopt::rcvhwm, kHighWater);
  socket.set(zmq::sockopt::ipv6, endpoint.find('[') != std::string::npos);
}

}  // namespace

PortSockets::PortSockets(const DataPortOptions& options)
    : context_(std::make_unique<zmq::context_t>(options.io_threads, kMostSockets)),
      questions_(std::make_unique<zmq::socket_t>(*context_, zmq::socket_type::router)),
      incoming_(std::make_unique<zmq::socket_t>(*context_, zmq::socket_type::pull)),
      strangers_(std::in_place, context_->handle(), incoming_->handle(), "strangers"),
      waiting_(std::make_unique<Waiting>()) {
  std::array<char, 41> key{};
  std::array<char, 41> secret{};
  SC_CHECK(zmq_curve_keypair(key.data(), secret.data()) == 0,
           "this libzmq was built without CURVE");
  address_.key = key.data();
  secret_key_ = secret.data();
  // An abstract name disappears with its socket, however the process ends.
  bind(options.bind == "ipc://*" ? "ipc://@" + random_name() : options.bind);
}

PortSockets::~PortSockets() = default;

void PortSockets::bind(const std::string& endpoint) {
  try {
    questions_->set(zmq::sockopt::linger, 0);
    questions_->bind("inproc://zeromq.zap.01");
    keep_quiet(*incoming_, endpoint);
    incoming_->set(zmq::sockopt::maxmsgsize, kLargestChunk + kEnvelope);
    if (endpoint.starts_with("ipc://")) {
      const uid_t own = geteuid();  // keeps DP-7: refuses other users' connections
      if (zmq_setsockopt(incoming_->handle(), ZMQ_IPC_FILTER_UID, &own, sizeof own) != 0) {
        throw zmq::error_t();
      }
    }
    incoming_->set(zmq::sockopt::backlog, 1024);
    incoming_->set(zmq::sockopt::handshake_ivl, kHandshakeMs);
    incoming_->set(zmq::sockopt::curve_server, true);
    incoming_->set(zmq::sockopt::curve_secretkey, secret_key_);
    incoming_->set(zmq::sockopt::zap_domain, std::string("stagecraft"));
    incoming_->bind(endpoint);
    address_.endpoint = incoming_->get(zmq::sockopt::last_endpoint);
  } catch (const zmq::error_t& error) {
    throw Error(Errc::TransportRefused,
                fmt::format("cannot listen on {}: {}; expected an address of this host such as "
                            "tcp://127.0.0.1:*, and a port that is free",
                            endpoint,
                            error.what()));
  }
}

void* PortSockets::context() {
  return context_->handle();
}

std::unique_ptr<zmq::socket_t> PortSockets::new_connection(const PortAddress& peer) {
  auto socket = std::make_unique<zmq::socket_t>(*context_, zmq::socket_type::push);
  keep_quiet(*socket, peer.endpoint);
  socket->set(zmq::sockopt::curve_serverkey, peer.key);
  socket->set(zmq::sockopt::curve_publickey, address_.key);
  socket->set(zmq::sockopt::curve_secretkey, secret_key_);
  // Retries soon if a peer does not answer, then ever later.
  socket->set(zmq::sockopt::reconnect_ivl, 10);
  socket->set(zmq::sockopt::reconnect_ivl_max, 1000);
  return socket;
}

void PortSockets::wait(std::span<Full> full,
                       std::span<Readable> others,
                       std::chrono::milliseconds longest) {
  auto& items = waiting_->polled;
  items.assign({{nullptr, waiting_->wake, ZMQ_POLLIN, 0},
                {questions_->handle(), 0, ZMQ_POLLIN, 0},
                {incoming_->handle(), 0, ZMQ_POLLIN, 0},
                {strangers_->events(), 0, ZMQ_POLLIN, 0}});
  const std::size_t first_other = items.size();
  for (const Readable& other : others) {
    items.push_back({nullptr, other.descriptor, ZMQ_POLLIN, 0});
  }
  const std::size_t first = items.size();
  for (const Full& one : full) {
    items.push_back({one.socket->handle(), 0, ZMQ_POLLOUT, 0});
  }
  const int events = zmq_poll(items.data(), static_cast<int>(items.size()), longest.count());
  if (events < 0 && zmq_errno() != EINTR) {
    throw zmq::error_t();
  }
  if ((items.front().revents & ZMQ_POLLIN) != 0) {
    std::uint64_t times = 0;
    static_cast<void>(::read(waiting_->wake, &times, sizeof times));
  }
  for (std::size_t i = 0; i < full.size(); ++i) {
    full[i].is_ready = events > 0 && (items[first + i].revents & ZMQ_POLLOUT) != 0;
  }
  for (std::size_t i = 0; i < others.size(); ++i) {
    others[i].is_ready = events > 0 && items[first_other + i].revents != 0;
  }
}

void PortSockets::wake() {
  const std::uint64_t one = 1;
  static_cast<void>(::write(waiting_->wake, &one, sizeof one));
}

void PortSockets::close() {
  strangers_.reset();
  incoming_->close();
  questions_->close();
  context_->close();
}

void require_valid(const PortAddress& peer) {
  if (!is_public_key(peer.key)) {
    throw Error(Errc::TransportRefused,
                fmt::format("the key of {} is not a CURVE public key: expected the 40 characters "
                            "that its data port returned",
                            peer.endpoint));
  }
  if (!names_a_port(peer.endpoint)) {
    throw cannot_connect(
        peer.endpoint, "it is neither tcp://ADDRESS:PORT nor ipc://NAME", kNameAnAddress);
  }
}

Error cannot_connect(const std::string& endpoint,
                     const std::string& why,
                     const std::string& what_to_do) {
  return Error(Errc::TransportRefused,
               fmt::format("cannot connect to {}: {}; {}", endpoint, why, what_to_do));
}

}  // namespace stagecraft
