#include "stagecraft/futures/transport/port_loop.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <exception>
#include <optional>
#include <random>
#include <utility>
#include <variant>

#include <fmt/format.h>
#include <zmq.hpp>

#include "stagecraft/base/check.h"
#include "stagecraft/base/log.h"
#include "stagecraft/base/process_end.h"

namespace stagecraft {

struct PortLoop::Order {
  struct Admit {
    PortAddress peer;
    zmq::socket_t socket;
  };
  struct Forget {
    std::string key;
  };
  struct Send {
    std::string key;
    Outgoing outgoing;
  };
  struct Tidy {};

  std::variant<Admit, Forget, Send, Tidy> what;
};

/// Another process as far as this one sends to it and takes from it.
struct PortLoop::Peer {
  Peer(const PortAddress& address,
       zmq::socket_t to,
       std::uint64_t number,
       const DataPortOptions& options)
      : key(address.key),
        endpoint(address.endpoint),
        socket(std::move(to)),
        link(number),
        outbox(options.chunk_bytes),
        arriving(options.largest_tensor) {}

  const std::string key, endpoint;
  zmq::socket_t socket;
  bool connected = false;
  const std::uint64_t link;
  std::uint64_t sequence = 0;
  Outbox outbox;
  bool blocked = false;  ///< the socket takes no more for now
  Reassembly arriving;
  std::int64_t partial = 0;  ///< of its bytes, what is counted
};

struct PortLoop::Message {
  std::string key;  ///< of the sender; empty when the socket does not know
  std::vector<zmq::message_t> parts;
};

struct PortLoop::Sockets {
  explicit Sockets(int io_threads)
      : context(io_threads, /*max_sockets_=*/16384),
        zap(context, zmq::socket_type::rep),
        in(context, zmq::socket_type::pull),
        wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    SC_CHECK(wake >= 0, fmt::format("eventfd failed: {}", std::strerror(errno)));
  }
  Sockets(const Sockets&) = delete;
  Sockets(Sockets&&) = delete;
  Sockets& operator=(const Sockets&) = delete;
  Sockets& operator=(Sockets&&) = delete;
  ~Sockets() { ::close(wake); }

  zmq::context_t context;
  zmq::socket_t zap;
  zmq::socket_t in;
  int wake;
  std::vector<zmq_pollitem_t> poll;  ///< kept for its memory
};

namespace {

/// Messages in ZeroMQ's own queue to or from one peer; few, as a small tensor waits behind them.
constexpr int kHighWater = 16;
/// CURVE adds a few bytes to each part.
constexpr std::int64_t kEnvelope = 4096;
/// How much is done for one socket before the others have their turn.
constexpr int kTurn = 32;
/// Longest handshake of a connection, in milliseconds, before it is tried again.
constexpr int kHandshake = 5000;
/// Up to this size a copy costs less than keeping the tensor until it has left.
constexpr std::int64_t kCopied = 4096;

std::string foreign(const zmq::error_t& error) {
  return error.what();
}

/// Whether ZeroMQ takes it: "tcp://HOST:PORT" or "ipc://NAME".
bool is_address(std::string_view endpoint) {
  constexpr std::string_view kTcp = "tcp://";
  constexpr std::string_view kIpc = "ipc://";
  if (endpoint.starts_with(kIpc)) {
    return endpoint.size() > kIpc.size();
  }
  const std::size_t colon = endpoint.rfind(':');
  const std::string_view port = endpoint.substr(std::min(colon + 1, endpoint.size()));
  int number = 0;
  const auto [end, fault] = std::from_chars(port.data(), port.data() + port.size(), number);
  return endpoint.starts_with(kTcp) && colon > kTcp.size() && fault == std::errc{} &&
         end == port.data() + port.size() && number > 0 && number <= 65535;
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

/// A tensor whose bytes a message refers to. Made by the loop, let go of by one of ZeroMQ's
/// threads.
struct Lent {
  at::Tensor tensor;
  std::atomic<bool> given{false};  ///< orders the two threads in the eyes of tools as well
};

void let_go(void* /*data*/, void* hint) {
  const process_end::AtWork at_work;
  auto* const lent = static_cast<Lent*>(hint);
  static_cast<void>(lent->given.load(std::memory_order_acquire));
  delete lent;
}

/// The bytes of one chunk: copied when they are few, else lent.
zmq::message_t chunk_of(const at::Tensor& tensor, const FrameHeader& header) {
  const auto size = static_cast<std::size_t>(header.chunk);
  if (size == 0) {
    return {};
  }
  const char* const bytes = static_cast<const char*>(tensor.const_data_ptr()) + header.offset;
  if (header.chunk <= kCopied) {
    return {bytes, size};
  }
  auto* const lent = new Lent{tensor, {}};
  lent->given.store(true, std::memory_order_release);
  return {const_cast<char*>(bytes), size, let_go, lent};  // ZeroMQ reads it only
}

/// Of what happens often the first is told, then ever fewer.
bool is_told(std::int64_t times) {
  return (times & (times - 1)) == 0;
}

std::string_view view(const zmq::message_t& message) {
  return {static_cast<const char*>(message.data()), message.size()};
}

}  // namespace

PortLoop::PortLoop(DataPortOptions options)
    : options_(std::move(options)), sockets_(std::make_unique<Sockets>(options_.io_threads)) {
  std::array<char, 41> key{};
  std::array<char, 41> secret{};
  SC_CHECK(zmq_curve_keypair(key.data(), secret.data()) == 0,
           "this libzmq was built without CURVE");
  address_.key = key.data();
  secret_key_ = secret.data();
  // A name of the abstract kind is gone with its socket, however the process ends.
  const std::string endpoint =
      options_.bind == "ipc://*" ? "ipc://@" + random_name() : options_.bind;
  try {
    sockets_->zap.set(zmq::sockopt::linger, 0);
    sockets_->zap.bind("inproc://zeromq.zap.01");
    zmq::socket_t& in = sockets_->in;
    keep_quiet(in, endpoint);
    in.set(zmq::sockopt::maxmsgsize, kLargestChunk + kEnvelope);
    in.set(zmq::sockopt::backlog, 1024);
    in.set(zmq::sockopt::curve_server, true);
    in.set(zmq::sockopt::curve_secretkey, secret_key_);
    in.set(zmq::sockopt::zap_domain, std::string("stagecraft"));
    in.bind(endpoint);
    address_.endpoint = in.get(zmq::sockopt::last_endpoint);
  } catch (const zmq::error_t& error) {
    throw Error(Errc::TransportRefused,
                fmt::format("cannot listen on {}: {}; expected an address of this host such as "
                            "tcp://127.0.0.1:*, and a port that is free",
                            endpoint,
                            foreign(error)));
  }
}

PortLoop::~PortLoop() = default;

void PortLoop::admit(const PortAddress& peer) {
  {
    const std::scoped_lock lock(mutex_);
    if (stopped_ || admitted_.contains(peer.key)) {
      return;
    }
  }
  std::array<std::uint8_t, 32> binary{};
  if (peer.key.size() != 40 || zmq_z85_decode(binary.data(), peer.key.c_str()) == nullptr) {
    throw Error(Errc::TransportRefused,
                fmt::format("the key of {} is no CURVE public key: expected the 40 characters that "
                            "its port gives",
                            peer.endpoint));
  }
  if (!is_address(peer.endpoint)) {
    throw Error(Errc::TransportRefused,
                fmt::format("cannot connect to {}: expected an address that a port gave, such as "
                            "tcp://127.0.0.1:41234",
                            peer.endpoint));
  }
  try {
    zmq::socket_t socket(sockets_->context, zmq::socket_type::push);
    keep_quiet(socket, peer.endpoint);
    socket.set(zmq::sockopt::curve_serverkey, peer.key);
    socket.set(zmq::sockopt::curve_publickey, address_.key);
    socket.set(zmq::sockopt::curve_secretkey, secret_key_);
    socket.set(zmq::sockopt::reconnect_ivl, 10);
    socket.set(zmq::sockopt::reconnect_ivl_max, 1000);
    // A peer that refuses this port says so by silence.
    socket.set(zmq::sockopt::handshake_ivl, kHandshake);
    // Made here, used by the loop: the mutex is the fence that ZeroMQ asks for.
    post({Order::Admit{peer, std::move(socket)}});
  } catch (const zmq::error_t& error) {
    throw Error(Errc::TransportRefused,
                fmt::format("no socket for {}: {}", peer.endpoint, foreign(error)));
  }
}

void PortLoop::forget(const PortAddress& peer) {
  post({Order::Forget{peer.key}});
}

void PortLoop::send(const std::string& key, Outgoing outgoing) {
  post({Order::Send{key, std::move(outgoing)}});
}

void PortLoop::tidy() {
  post({Order::Tidy{}});
}

void PortLoop::attach(NetworkId network, const std::shared_ptr<const Mailboxes>& mailboxes) {
  const std::scoped_lock lock(mutex_);
  std::weak_ptr<const Mailboxes>& place = networks_[network];
  if (!place.expired()) {
    throw Error(Errc::UsageArgument,
                fmt::format("the port has a network {} already: each crew needs an id of its own",
                            network.value));
  }
  place = mailboxes;
}

void PortLoop::detach(NetworkId network) {
  const std::scoped_lock lock(mutex_);
  networks_.erase(network);
}

void PortLoop::stop() {
  const std::scoped_lock lock(mutex_);
  stopped_ = true;
  wake();
}

PortCounts PortLoop::counts() const {
  const std::scoped_lock lock(mutex_);
  return counts_;
}

void PortLoop::post(Order order) {
  const std::scoped_lock lock(mutex_);
  if (stopped_) {
    return;
  }
  if (const auto* admit = std::get_if<Order::Admit>(&order.what)) {
    admitted_.insert(admit->peer.key);
  } else if (const auto* forget = std::get_if<Order::Forget>(&order.what)) {
    admitted_.erase(forget->key);
  }
  orders_.push_back(std::move(order));
  if (asleep_) {
    wake();
  }
}

/// Needs the mutex.
void PortLoop::wake() {
  asleep_ = false;
  const std::uint64_t one = 1;
  static_cast<void>(::write(sockets_->wake, &one, sizeof one));
}

void PortLoop::run() noexcept {
  try {
    turns();
  } catch (const std::exception& error) {
    log(Level::Error, "data port failed", {{"endpoint", address_.endpoint}, {"why", error.what()}});
  }
  const process_end::AtWork at_work;
  std::vector<Order> left;
  {
    const std::scoped_lock lock(mutex_);
    stopped_ = true;
    left.swap(orders_);
  }
  busy_.clear();
  peers_.clear();
  left.clear();
  sockets_->in.close();
  sockets_->zap.close();
  const process_end::Elsewhere waiting;
  sockets_->context.close();
}

void PortLoop::turns() {
  bool more = false;
  while (true) {
    wait(more);
    const process_end::AtWork at_work;
    if (!carry_out_orders()) {
      return;
    }
    judge_connections();
    more = take_messages();
    more = send_pieces() || more;
  }
}

void PortLoop::wait(bool more) {
  {
    const std::scoped_lock lock(mutex_);
    more = more || stopped_ || !orders_.empty();
    asleep_ = !more;
  }
  auto& poll = sockets_->poll;
  poll.assign({{nullptr, sockets_->wake, ZMQ_POLLIN, 0},
               {sockets_->zap.handle(), 0, ZMQ_POLLIN, 0},
               {sockets_->in.handle(), 0, ZMQ_POLLIN, 0}});
  const std::size_t first = poll.size();
  for (Peer* peer : busy_) {
    if (peer->blocked) {
      poll.push_back({peer->socket.handle(), 0, ZMQ_POLLOUT, 0});
    }
  }
  const int events = zmq_poll(poll.data(), static_cast<int>(poll.size()), more ? 0 : -1);
  if (events < 0 && zmq_errno() != EINTR) {
    throw zmq::error_t();
  }
  if ((poll.front().revents & ZMQ_POLLIN) != 0) {
    std::uint64_t times = 0;
    static_cast<void>(::read(sockets_->wake, &times, sizeof times));
  }
  std::size_t at = first;
  for (Peer* peer : busy_) {
    if (peer->blocked) {
      peer->blocked = events <= 0 || (poll[at].revents & ZMQ_POLLOUT) == 0;
      ++at;
    }
  }
}

bool PortLoop::carry_out_orders() {
  std::vector<Order> orders;
  {
    const std::scoped_lock lock(mutex_);
    asleep_ = false;
    if (stopped_) {
      return false;
    }
    orders.swap(orders_);
  }
  for (Order& order : orders) {
    carry_out(order);
  }
  return true;
}

void PortLoop::carry_out(Order& order) {
  if (auto* const admit = std::get_if<Order::Admit>(&order.what)) {
    auto& peer = peers_[admit->peer.key];
    if (peer == nullptr) {
      peer = std::make_unique<Peer>(admit->peer, std::move(admit->socket), ++links_, options_);
    }
  } else if (const auto* const forget = std::get_if<Order::Forget>(&order.what)) {
    const auto found = peers_.find(forget->key);
    if (found != peers_.end()) {
      found->second->arriving.break_link();
      count_partial(*found->second);
      std::erase(busy_, found->second.get());
      drop_waiting(forget->key, found->second->outbox.tensors());
      peers_.erase(found);
    }
  } else if (auto* const send = std::get_if<Order::Send>(&order.what)) {
    const auto found = peers_.find(send->key);
    if (found == peers_.end()) {
      drop_waiting(send->key, 1);
      return;
    }
    Peer& peer = *found->second;
    if (!peer.connected) {
      // Not before: by then both have admitted each other, and nobody is refused.
      peer.connected = true;
      peer.socket.connect(peer.endpoint);
    }
    if (peer.outbox.empty()) {
      busy_.push_back(&peer);
    }
    peer.outbox.push(std::move(send->outgoing));
  } else {
    for (const auto& [key, peer] : peers_) {
      peer->arriving.keep([this](const FrameHeader& header) {
        const auto mailboxes = mailboxes_of(header.network);
        const Mailbox* const mailbox = mailboxes == nullptr ? nullptr : mailboxes->find(header.to);
        return mailbox != nullptr && mailbox->accepts(header.tag);
      });
      count_partial(*peer);
    }
  }
}

std::shared_ptr<const Mailboxes> PortLoop::mailboxes_of(NetworkId network) const {
  const std::scoped_lock lock(mutex_);
  const auto found = networks_.find(network);
  return found == networks_.end() ? nullptr : found->second.lock();
}

/// Answers by RFC 27: version, request, status, text, user, metadata.
void PortLoop::judge_connections() {
  constexpr std::size_t kRequest = 1;
  constexpr std::size_t kCredentials = 6;
  while (true) {
    std::vector<zmq::message_t> request;
    do {
      zmq::message_t part;
      if (!sockets_->zap.recv(part, zmq::recv_flags::dontwait)) {
        return;
      }
      request.push_back(std::move(part));
    } while (request.back().more());
    std::array<char, 41> key{};
    if (request.size() == kCredentials + 1 && request[kCredentials].size() == 32) {
      zmq_z85_encode(key.data(), request[kCredentials].data<std::uint8_t>(), 32);
    }
    bool admitted = false;
    std::int64_t refused = 0;
    {
      const std::scoped_lock lock(mutex_);
      admitted = admitted_.contains(key.data());
      refused = counts_.connections_refused += admitted ? 0 : 1;
    }
    if (!admitted && is_told(refused)) {
      log(Level::Warning,
          "connection refused",
          {{"endpoint", address_.endpoint}, {"key", key.data()}, {"refused", refused}});
    }
    // 300 and not 400: whoever will be admitted in a moment may try again.
    const std::array<std::string_view, 6> answer{
        "1.0",
        request.size() > kRequest ? view(request[kRequest]) : std::string_view(),
        admitted ? "200" : "300",
        "",
        admitted ? std::string_view(key.data()) : std::string_view(),
        ""};
    for (std::size_t i = 0; i < answer.size(); ++i) {
      static_cast<void>(sockets_->zap.send(
          zmq::buffer(answer[i]),
          i + 1 < answer.size() ? zmq::send_flags::sndmore : zmq::send_flags::none));
    }
  }
}

bool PortLoop::take_messages() {
  for (int i = 0; i < kTurn; ++i) {
    Message message;
    bool more = false;
    do {
      zmq::message_t part;
      if (!sockets_->in.recv(part, zmq::recv_flags::dontwait)) {
        return false;
      }
      // Parts beyond those of a frame are read and dropped.
      more = part.more();
      if (message.parts.size() < 3) {
        message.parts.push_back(std::move(part));
      }
    } while (more);
    if (const char* user = zmq_msg_gets(message.parts.front().handle(), "User-Id")) {
      message.key = user;
    }
    take(message);
  }
  return true;
}

void PortLoop::take(Message& message) {
  const auto peer = peers_.find(message.key);
  if (peer == peers_.end()) {
    count(message.key, [](LinkCounts& link) { ++link.frames_refused; });
    return;
  }
  const bool broken = peer->second->arriving.broken();
  try {
    take_from(*peer->second, message);
  } catch (const std::exception& error) {
    peer->second->arriving.break_link();
    tell_refused(message.key, error.what());
    if (!broken && options_.when_broken) {
      options_.when_broken(
          message.key,
          Error(Errc::TransportRefused,
                fmt::format(
                    "the link from the port of key {} broke: {}", message.key, error.what())));
    }
  }
  // A callback may have had the peer forgotten, but that is an order for the next turn.
  count_partial(*peer->second);
}

void PortLoop::take_from(Peer& peer, Message& message) {
  if (message.parts.size() != 2) {
    throw Error(Errc::TransportRefused,
                fmt::format("malformed frame: it has {} parts, not a header and a chunk",
                            message.parts.size()));
  }
  const FrameHeader header = decode_frame(view(message.parts[0]));
  const auto mailboxes = mailboxes_of(header.network);
  const bool known = mailboxes != nullptr && mailboxes->find(header.to) != nullptr &&
                     mailboxes->find(header.from) != nullptr;
  const bool wanted = known && mailboxes->of(header.to).accepts(header.tag);
  std::optional<at::Tensor> whole = peer.arriving.take(header, view(message.parts[1]), wanted);
  if (peer.arriving.broken()) {
    tell_refused(peer.key, "its link broke before");
    return;
  }
  count(peer.key, [&](LinkCounts& link) {
    link.bytes_received += header.chunk;
    link.tensors_received += whole ? 1 : 0;
  });
  if (!whole) {
    return;
  }
  if (known) {
    // One that nobody wants is counted there: what is over stays over.
    mailboxes->of(header.to).deliver(header.from, header.tag, *std::move(whole));
    return;
  }
  std::int64_t misdirected = 0;
  {
    const std::scoped_lock lock(mutex_);
    misdirected = ++counts_.tensors_misdirected;
  }
  if (is_told(misdirected)) {
    log(Level::Warning,
        "tensor misdirected",
        {{"key", peer.key},
         {"network", header.network},
         {"from", header.from},
         {"to", header.to},
         {"tag", to_string(header.tag)},
         {"misdirected", misdirected}});
  }
}

bool PortLoop::send_pieces() {
  bool more = false;
  for (std::size_t i = 0; i < busy_.size();) {
    Peer& peer = *busy_[i];
    send_pieces_to(peer);
    if (peer.outbox.empty()) {
      busy_[i] = busy_.back();
      busy_.pop_back();
    } else {
      more = more || !peer.blocked;
      ++i;
    }
  }
  return more;
}

void PortLoop::send_pieces_to(Peer& peer) {
  for (int i = 0; i < kTurn && !peer.blocked && !peer.outbox.empty(); ++i) {
    auto [header, tensor] = peer.outbox.next();
    header.link = peer.link;
    header.sequence = peer.sequence;
    const std::string encoded = encode_frame(header);
    zmq::message_t body = chunk_of(tensor, header);
    // ZeroMQ takes both or none: when the second is not taken it has dropped the first.
    if (!peer.socket.send(zmq::buffer(encoded),
                          zmq::send_flags::sndmore | zmq::send_flags::dontwait) ||
        !peer.socket.send(std::move(body), zmq::send_flags::dontwait)) {
      peer.blocked = true;
      return;
    }
    ++peer.sequence;
    const bool last = header.offset + header.chunk == header.total;
    tensor.reset();
    peer.outbox.sent();
    count(peer.key, [&, bytes = header.chunk](LinkCounts& link) {
      link.bytes_sent += bytes;
      link.tensors_sent += last ? 1 : 0;
    });
  }
}

void PortLoop::drop_waiting(const std::string& key, std::int64_t tensors) {
  count(key, [tensors](LinkCounts& link) { link.tensors_dropped += tensors; });
}

template <class Change>
void PortLoop::count(const std::string& key, Change change) {
  const std::scoped_lock lock(mutex_);
  change(counts_.links[key]);
}

void PortLoop::count_partial(Peer& peer) {
  const std::int64_t now = peer.arriving.bytes();
  if (now != peer.partial) {
    const std::scoped_lock lock(mutex_);
    counts_.partial_bytes += now - std::exchange(peer.partial, now);
  }
}

void PortLoop::tell_refused(const std::string& key, std::string_view why) {
  std::int64_t refused = 0;
  count(key, [&refused](LinkCounts& link) { refused = ++link.frames_refused; });
  if (is_told(refused)) {
    log(Level::Warning, "frame refused", {{"key", key}, {"why", why}, {"refused", refused}});
  }
}

}  // namespace stagecraft
