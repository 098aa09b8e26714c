#include "stagecraft/futures/transport/zmq/port_loop.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
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
#include "stagecraft/base/process/process_end.h"
#include "stagecraft/futures/transport/zmq/peer_watch.h"
#include "stagecraft/futures/transport/zmq/strangers.h"

namespace stagecraft {

struct PortLoop::Order {
  struct LetIn {
    std::string key;
  };
  struct Forget {
    std::shared_ptr<Peer> peer;
  };
  struct Send {
    std::shared_ptr<Peer> peer;
  };
  struct Tidy {};

  std::variant<LetIn, Forget, Send, Tidy> what;
};

/// The state of another process that this one sends to and receives from.
struct PortLoop::Peer {
  Peer(PortAddress where, std::uint64_t number, const DataPortOptions& options)
      : key(where.key),
        endpoint(std::move(where.endpoint)),
        link(number),
        outbox(options.chunk_bytes),
        arriving(options.largest_tensor) {}

  const std::string key;
  const std::string endpoint;
  const std::uint64_t link;

  std::mutex sending;    ///< guards the members below; locked before the loop's mutex if both are
  zmq::socket_t socket;  ///< made with the first tensor (DP-5)
  std::uint64_t sequence = 0;
  Outbox outbox;
  bool blocked = false;            ///< the socket accepts no more for now
  bool gone = false;               ///< forgotten: nothing is sent there any more
  std::optional<PeerWatch> watch;  ///< made with the socket; then belongs to the loop

  // The rest belongs to the thread of the loop.
  Reassembly arriving;
  std::int64_t partial = 0;  ///< the part of its bytes that is counted
};

/// A handshake that waits for its key to be admitted.
struct PortLoop::Knock {
  std::string key;
  std::string asker;   ///< ZeroMQ's name of the connection
  std::string number;  ///< of its request
};

struct PortLoop::Message {
  std::string key;  ///< of the sender; empty when the socket does not know
  std::vector<zmq::message_t> parts;
};

struct PortLoop::Sockets {
  explicit Sockets(int io_threads)
      : context(io_threads, /*max_sockets_=*/16384),
        zap(context, zmq::socket_type::router),
        in(context, zmq::socket_type::pull),
        strangers(std::in_place, context.handle(), in.handle(), "strangers"),
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
  std::optional<Strangers> strangers;  ///< exists while `in` is open
  int wake;
  std::vector<zmq_pollitem_t> poll;  ///< kept to reuse its memory
};

namespace {

/// The number of messages in ZeroMQ's own queue to or from one peer. It is small because a small
/// tensor waits behind them.
constexpr int kHighWater = 16;
/// CURVE adds a few bytes to each part.
constexpr std::int64_t kEnvelope = 4096;
/// The number of messages handled for one socket before the others have their turn.
constexpr int kTurn = 32;
/// The most handshakes that wait at a time; beyond it the oldest are never answered.
constexpr std::size_t kMostKnocks = 1024;
/// The longest time of a handshake, including the wait for a key that is admitted late.
constexpr int kHandshakeMs = 10'000;
constexpr const char* kExpected = "expected an address that a port gave";
/// kLooks: number of looks after peers per silence time. kLongestLook: the longest interval between
/// looks.
constexpr int kLooks = 10;
constexpr std::chrono::milliseconds kLongestLook{500};
/// Up to this size, a copy is cheaper than keeping the tensor until it has left.
constexpr std::int64_t kCopied = 4096;

std::string foreign(const zmq::error_t& error) {
  return error.what();
}

/// Checks the form of the address without connecting to it.
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

[[noreturn]] void throw_no_way(const std::string& endpoint,
                               const std::string& why,
                               const std::string& what_to_do) {
  throw Error(Errc::TransportRefused,
              fmt::format("cannot connect to {}: {}; {}", endpoint, why, what_to_do));
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

/// A tensor whose bytes a message refers to. The loop makes it; a ZeroMQ thread releases it.
struct Lent {
  at::Tensor tensor;
  std::atomic<bool> given{false};  ///< orders the two threads for race detectors too
};

void let_go(void* /*data*/, void* hint) {
  const process_end::AtWork at_work;
  auto* const lent = static_cast<Lent*>(hint);
  static_cast<void>(lent->given.load(std::memory_order_acquire));
  delete lent;
}

/// Returns the bytes of one chunk: copied if small, else lent.
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
  return {const_cast<char*>(bytes), size, let_go, lent};  // ZeroMQ only reads it
}

/// Returns whether to log an event that has occurred so often: the first, then ever fewer.
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
  // An abstract name disappears with its socket, however the process ends.
  const std::string endpoint =
      options_.bind == "ipc://*" ? "ipc://@" + random_name() : options_.bind;
  try {
    sockets_->zap.set(zmq::sockopt::linger, 0);
    sockets_->zap.bind("inproc://zeromq.zap.01");
    zmq::socket_t& in = sockets_->in;
    keep_quiet(in, endpoint);
    in.set(zmq::sockopt::maxmsgsize, kLargestChunk + kEnvelope);
    if (endpoint.starts_with("ipc://")) {
      const uid_t own = geteuid();  // keeps DP-7: refuses other users' connections
      if (zmq_setsockopt(in.handle(), ZMQ_IPC_FILTER_UID, &own, sizeof own) != 0) {
        throw zmq::error_t();
      }
    }
    in.set(zmq::sockopt::backlog, 1024);
    in.set(zmq::sockopt::handshake_ivl, kHandshakeMs);
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
  std::array<std::uint8_t, 32> binary{};
  std::array<char, 41> again{};
  if (peer.key.size() != 40 || zmq_z85_decode(binary.data(), peer.key.c_str()) == nullptr ||
      zmq_z85_encode(again.data(), binary.data(), binary.size()) != peer.key) {
    throw Error(Errc::TransportRefused,
                fmt::format("the key of {} is no CURVE public key: expected the 40 characters that "
                            "its port gives",
                            peer.endpoint));
  }
  if (!names_a_port(peer.endpoint)) {
    throw_no_way(peer.endpoint, "it is neither tcp://ADDRESS:PORT nor ipc://NAME", kExpected);
  }
  {
    const std::scoped_lock lock(mutex_);
    if (stopped_ || peers_.contains(peer.key)) {
      return;
    }
    peers_[peer.key] = std::make_shared<Peer>(peer, ++links_, options_);
  }
  post({Order::LetIn{peer.key}});
}

/// Requires the peer's mutex.
void PortLoop::connect(Peer& peer) {
  try {
    zmq::socket_t socket(sockets_->context, zmq::socket_type::push);
    keep_quiet(socket, peer.endpoint);
    socket.set(zmq::sockopt::curve_serverkey, peer.key);
    socket.set(zmq::sockopt::curve_publickey, address_.key);
    socket.set(zmq::sockopt::curve_secretkey, secret_key_);
    // Retries soon if a peer does not answer, then ever later.
    socket.set(zmq::sockopt::reconnect_ivl, 10);
    socket.set(zmq::sockopt::reconnect_ivl_max, 1000);
    if (options_.silence.count() > 0) {
      peer.watch.emplace(sockets_->context.handle(), socket.handle(), peer.link, options_.silence);
    }
    socket.connect(peer.endpoint);
    peer.socket = std::move(socket);
  } catch (const zmq::error_t& error) {
    throw_no_way(peer.endpoint,
                 foreign(error),
                 error.num() == EMFILE ? "raise what limits open files (ulimit -n)" : kExpected);
  }
}

void PortLoop::forget(const PortAddress& address) {
  std::shared_ptr<Peer> peer;
  {
    const std::scoped_lock lock(mutex_);
    const auto found = peers_.find(address.key);
    if (found == peers_.end()) {
      return;
    }
    peer = std::move(found->second);
    peers_.erase(found);
  }
  const Outbox dropped = give_up(*peer);
  count(peer->key, [&dropped](LinkCounts& link) { link.tensors_dropped += dropped.tensors(); });
  post({Order::Forget{std::move(peer)}});
}

/// Stops sending to the peer. Returns its waiting tensors, so that the caller drops them outside of
/// all locks.
Outbox PortLoop::give_up(Peer& peer) {
  const std::scoped_lock lock(peer.sending);
  peer.gone = true;
  return std::exchange(peer.outbox, Outbox(options_.chunk_bytes));
}

void PortLoop::send(const std::string& key, Outgoing outgoing) {
  const std::shared_ptr<Peer> peer = find_peer(key);
  Spent spent;
  bool is_rest = false;
  bool is_dropped = peer == nullptr;
  if (peer != nullptr) {
    const std::scoped_lock lock(peer->sending);
    is_dropped = peer->gone;
    if (!is_dropped) {
      if (!peer->socket) {
        connect(*peer);
      }
      const bool waits = !peer->outbox.empty();
      peer->outbox.push(std::move(outgoing));
      is_rest = !waits && !send_pieces_to(*peer, spent);
    }
  }
  if (is_dropped) {
    count(key, [](LinkCounts& link) { ++link.tensors_dropped; });
  }
  if (is_rest) {
    post({Order::Send{peer}});
  }
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
  orders_.push_back(std::move(order));
  if (asleep_) {
    wake();
  }
}

/// Requires the mutex.
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
  Peers peers;
  {
    const std::scoped_lock lock(mutex_);
    stopped_ = true;
    left.swap(orders_);
    peers.swap(peers_);
  }
  for (const auto& [key, peer] : peers) {
    static_cast<void>(give_up(*peer));  // a send in progress finishes first
  }
  peers.clear();
  busy_.clear();
  left.clear();
  sockets_->strangers.reset();
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
    look_after_peers();
    end_strangers();
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
               {sockets_->in.handle(), 0, ZMQ_POLLIN, 0},
               {sockets_->strangers->events(), 0, ZMQ_POLLIN, 0}});
  const std::size_t first = poll.size();
  for (const auto& peer : busy_) {
    if (peer->blocked) {
      poll.push_back({peer->socket.handle(), 0, ZMQ_POLLOUT, 0});
    }
  }
  const long look = options_.silence.count() == 0 ? -1 : look_interval().count();
  const int events = zmq_poll(poll.data(), static_cast<int>(poll.size()), more ? 0 : look);
  if (events < 0 && zmq_errno() != EINTR) {
    throw zmq::error_t();
  }
  if ((poll.front().revents & ZMQ_POLLIN) != 0) {
    std::uint64_t times = 0;
    static_cast<void>(::read(sockets_->wake, &times, sizeof times));
  }
  std::size_t at = first;
  for (const auto& peer : busy_) {
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
  if (auto* const admitted = std::get_if<Order::LetIn>(&order.what)) {
    std::erase_if(knocks_, [this, admitted](const Knock& knock) {
      const bool known = knock.key == admitted->key;
      if (known) {
        let_in(knock);
      }
      return known;
    });
  } else if (const auto* const forget = std::get_if<Order::Forget>(&order.what)) {
    forget->peer->arriving.break_link();
    count_partial(*forget->peer);
    std::erase(busy_, forget->peer);
  } else if (auto* const send = std::get_if<Order::Send>(&order.what)) {
    busy_.push_back(std::move(send->peer));
  } else {
    for (const auto& peer : all_peers()) {
      peer->arriving.keep([this](const FrameHeader& header) {
        const auto mailboxes = mailboxes_of(header.network);
        const Mailbox* const mailbox = mailboxes == nullptr ? nullptr : mailboxes->find(header.to);
        return mailbox != nullptr && mailbox->accepts(header.tag);
      });
      count_partial(*peer);
    }
  }
}

std::shared_ptr<PortLoop::Peer> PortLoop::find_peer(const std::string& key) const {
  const std::scoped_lock lock(mutex_);
  const auto found = peers_.find(key);
  return found == peers_.end() ? nullptr : found->second;
}

std::vector<std::shared_ptr<PortLoop::Peer>> PortLoop::all_peers() const {
  const std::scoped_lock lock(mutex_);
  std::vector<std::shared_ptr<Peer>> all;
  all.reserve(peers_.size());
  for (const auto& [key, peer] : peers_) {
    all.push_back(peer);
  }
  return all;
}

std::shared_ptr<const Mailboxes> PortLoop::mailboxes_of(NetworkId network) const {
  const std::scoped_lock lock(mutex_);
  const auto found = networks_.find(network);
  return found == networks_.end() ? nullptr : found->second.lock();
}

std::chrono::milliseconds PortLoop::look_interval() const {
  return std::min(options_.silence / kLooks, kLongestLook);
}

/// Keeps DP-6.
void PortLoop::look_after_peers() {
  const auto now = std::chrono::steady_clock::now();
  if (options_.silence.count() == 0 || now < look_at_) {
    return;
  }
  look_at_ = now + look_interval();
  for (const auto& peer : all_peers()) {
    bool used = false;
    {
      const std::scoped_lock lock(peer->sending);
      if (!peer->watch) {
        continue;  // nothing was sent to it yet (DP-5)
      }
      used = peer->sequence > 0 || !peer->outbox.empty();
    }
    const std::optional<std::string> why = peer->watch->look(now, used);
    if (why && options_.when_cut) {
      options_.when_cut(peer->key,
                        Error(Errc::TransportClosed,
                              fmt::format("nothing gets through to {}: {}", peer->endpoint, *why)));
    }
  }
}

/// Keeps DP-7.
void PortLoop::end_strangers() {
  const int ended = sockets_->strangers->look();
  if (ended == 0) {
    return;
  }
  std::int64_t before = 0;
  {
    const std::scoped_lock lock(mutex_);
    before = std::exchange(counts_.strangers_ended, counts_.strangers_ended + ended);
  }
  if (before == 0) {
    log(Level::Warning,
        "many connections without a handshake: the oldest are ended",
        {{"endpoint", address_.endpoint}, {"most", kMostStrangers}});
  }
}

/// The requests have the form of RFC 27: version, number, domain, address, identity, mechanism,
/// key.
void PortLoop::judge_connections() {
  constexpr std::size_t kParts = 7;
  while (true) {
    std::vector<zmq::message_t> parts;
    do {
      zmq::message_t part;
      if (!sockets_->zap.recv(part, zmq::recv_flags::dontwait)) {
        return;
      }
      parts.push_back(std::move(part));
    } while (parts.back().more());
    // The envelope comes before the request: the asker, and an empty part.
    if (parts.size() != kParts + 2 || parts.back().size() != 32) {
      continue;
    }
    std::array<char, 41> key{};
    zmq_z85_encode(key.data(), parts.back().data<std::uint8_t>(), 32);
    Knock knock{.key = key.data(), .asker = parts[0].to_string(), .number = parts[3].to_string()};
    std::int64_t held = 0;
    {
      const std::scoped_lock lock(mutex_);
      if (!peers_.contains(knock.key)) {
        held = ++counts_.connections_held;
      }
    }
    if (held == 0) {
      let_in(knock);
      continue;
    }
    if (is_told(held)) {
      log(Level::Info,
          "connection of a key that is not admitted",
          {{"endpoint", address_.endpoint}, {"key", knock.key}, {"held", held}});
    }
    knocks_.push_back(std::move(knock));
    if (knocks_.size() > kMostKnocks) {
      knocks_.pop_front();
    }
  }
}

void PortLoop::let_in(const Knock& knock) {
  const std::array<std::string_view, 8> answer{
      knock.asker, "", "1.0", knock.number, "200", "OK", knock.key, ""};
  for (std::size_t i = 0; i < answer.size(); ++i) {
    static_cast<void>(sockets_->zap.send(
        zmq::buffer(answer[i]),
        zmq::send_flags::dontwait |
            (i + 1 < answer.size() ? zmq::send_flags::sndmore : zmq::send_flags::none)));
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
      // Reads and drops parts beyond those of a frame.
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
  const std::shared_ptr<Peer> peer = find_peer(message.key);
  if (peer == nullptr) {
    count(message.key, [](LinkCounts& link) { ++link.frames_refused; });
    return;
  }
  const bool broken = peer->arriving.broken();
  try {
    take_from(*peer, message);
  } catch (const std::exception& error) {
    peer->arriving.break_link();
    tell_refused(message.key, error.what());
    if (!broken && options_.when_broken) {
      options_.when_broken(
          message.key,
          Error(Errc::TransportRefused,
                fmt::format(
                    "the link from the port of key {} broke: {}", message.key, error.what())));
    }
  }
  count_partial(*peer);
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
    // The mailbox counts a tensor that is not wanted: an epoch that is over stays over.
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
    Spent spent;
    const std::unique_lock lock(peer.sending);
    if (send_pieces_to(peer, spent)) {
      std::swap(busy_[i], busy_.back());
      busy_.pop_back();
    } else {
      more = more || !peer.blocked;
      ++i;
    }
  }
  return more;
}

bool PortLoop::send_pieces_to(Peer& peer, Spent& spent) {
  for (int i = 0; i < kTurn && !peer.blocked && !peer.outbox.empty(); ++i) {
    auto [header, tensor] = peer.outbox.next();
    header.link = peer.link;
    header.sequence = peer.sequence;
    const std::string encoded = encode_frame(header);
    zmq::message_t body = chunk_of(tensor, header);
    // ZeroMQ takes both or none: if it does not take the second, it has dropped the first.
    if (!peer.socket.send(zmq::buffer(encoded),
                          zmq::send_flags::sndmore | zmq::send_flags::dontwait) ||
        !peer.socket.send(std::move(body), zmq::send_flags::dontwait)) {
      peer.blocked = true;
      return false;
    }
    ++peer.sequence;
    const bool last = header.offset + header.chunk == header.total;
    if (last) {
      spent.push_back(std::move(tensor));
    }
    peer.outbox.sent();
    count(peer.key, [&, bytes = header.chunk](LinkCounts& link) {
      link.bytes_sent += bytes;
      link.tensors_sent += last ? 1 : 0;
    });
  }
  return peer.outbox.empty();
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
