#include "stagecraft/futures/transport/zmq/data_port.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/quantize_per_tensor.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <zmq.hpp>

#include "stagecraft/futures/routing/routed.h"
#include "stagecraft/futures/transport/zmq/strangers.h"
#include "stagecraft/tests/futures/transport/zmq/raw_peer.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/lingering_port.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

const Error kWhy(Errc::WorkerFailed, "a test ended the step");

/// Listens with a key of its own and never reads.
class MutePeer {
 public:
  MutePeer() {
    in_.set(zmq::sockopt::linger, 0);
    in_.set(zmq::sockopt::rcvhwm, 1);
    in_.set(zmq::sockopt::rcvbuf, 4096);
    in_.set(zmq::sockopt::curve_server, true);
    in_.set(zmq::sockopt::curve_secretkey, std::string(keys_.secret.data()));
    in_.bind("tcp://127.0.0.1:*");
  }

  [[nodiscard]] PortAddress address() const {
    return {in_.get(zmq::sockopt::last_endpoint), keys_.open.data()};
  }

 private:
  KeyPair keys_;
  zmq::context_t context_;
  zmq::socket_t in_{context_, zmq::socket_type::pull};
};

/// Holds rank 0 behind one port and rank 1 behind another; a test places a third rank.
struct TwoPorts {
  explicit TwoPorts(const std::string& bind = "tcp://127.0.0.1:*", DataPortOptions options = {})
      : port([&] {
          options.bind = bind;
          return DataPort::open(options);
        }()),
        other(DataPort::open({.bind = bind})) {
    network.place(Rank{1}, other->address());
    other_network.place(Rank{0}, port->address());
  }

  /// Requires that transfers work both ways.
  void require_work(std::int64_t value) {
    zero->send(Rank{1}, kTag, number(value));
    REQUIRE(number_from(one->receive(Rank{0}, kTag)) == value);
    one->send(Rank{0}, kTag, number(value + 1));
    REQUIRE(number_from(zero->receive(Rank{1}, kTag)) == value + 1);
  }

  [[nodiscard]] LinkCounts link(const std::string& key) const { return port->counts().links[key]; }

  std::shared_ptr<DataPort> port;
  std::shared_ptr<DataPort> other;
  RoutedNetwork network{port, kNetwork, 3};
  RoutedNetwork other_network{other, kNetwork, 3};
  std::shared_ptr<Transport> zero = network.endpoint(Rank{0});
  std::shared_ptr<Transport> one = other_network.endpoint(Rank{1});
};

/// Holds a connection that sends bytes and stays open until the socket closes.
class Connection {
 public:
  explicit Connection(const PortAddress& address) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(static_cast<std::uint16_t>(
        std::stoi(address.endpoint.substr(address.endpoint.rfind(':') + 1))));
    REQUIRE(::connect(socket_, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
  }
  Connection(const Connection&) = delete;
  Connection(Connection&&) = delete;
  Connection& operator=(const Connection&) = delete;
  Connection& operator=(Connection&&) = delete;
  ~Connection() { ::close(socket_); }

  void write(const std::string& bytes) const {
    static_cast<void>(::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL));
  }
  /// Returns whether the other end has closed the connection; drops received bytes.
  [[nodiscard]] bool is_ended() const {
    std::array<char, 1024> said{};
    ssize_t count = 0;
    do {
      count = ::recv(socket_, said.data(), said.size(), MSG_DONTWAIT);
    } while (count > 0);
    return count == 0 || errno != EAGAIN;
  }

 private:
  int socket_;
};

/// Holds a plain socket that sees whether a peer connects.
class Listener {
 public:
  Listener() {
    sockaddr_in here{};
    here.sin_family = AF_INET;
    here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::bind(socket_, reinterpret_cast<const sockaddr*>(&here), sizeof here) == 0);
    REQUIRE(::listen(socket_, 8) == 0);
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener() { ::close(socket_); }

  [[nodiscard]] std::string endpoint() const {
    sockaddr_in here{};
    socklen_t size = sizeof here;
    REQUIRE(::getsockname(socket_, reinterpret_cast<sockaddr*>(&here), &size) == 0);
    return "tcp://127.0.0.1:" + std::to_string(ntohs(here.sin_port));
  }
  [[nodiscard]] bool is_asked(int milliseconds) const {
    pollfd knock{.fd = socket_, .events = POLLIN, .revents = 0};
    return ::poll(&knock, 1, milliseconds) == 1;
  }

 private:
  const int socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
};

TEST_CASE("garbage on a port's socket harms nobody (DP-1)", "[futures][port]") {
  TwoPorts two;
  std::vector<std::unique_ptr<Connection>> connections;
  const std::string greeting = std::string("\xff\0\0\0\0\0\0\0\1\x7f", 10) + std::string("\3\0", 2);
  std::string noise;
  for (int i = 0; i < 70'000; ++i) {
    noise += static_cast<char>(i * 2654435761U >> 13U);
  }
  for (const std::string& bytes : {std::string(),
                                   std::string("GET / HTTP/1.1\r\n\r\n"),
                                   noise,
                                   std::string(1 << 20, '\xff'),
                                   greeting,
                                   greeting + "CURVE" + std::string(47, '\0'),
                                   greeting + "CURVE" + std::string(47, '\0') + noise,
                                   greeting + "NULL" + std::string(48, '\0') +
                                       std::string("\2\xff\xff\xff\xff\xff\xff\xff\xff", 9)}) {
    connections.push_back(std::make_unique<Connection>(two.port->address()));
    connections.back()->write(bytes);
    two.require_work(1);
  }
  for (int i = 0; i < 50; ++i) {
    connections.push_back(std::make_unique<Connection>(two.port->address()));
  }
  connections.resize(20);
  two.require_work(2);
  CHECK(two.port->counts().links.size() == 1);
}

/// Returns the beginning of a command of this many bytes, which would be CURVE's HELLO.
std::string command_of(std::uint64_t size) {
  std::string bytes = std::string("\xff\0\0\0\0\0\0\0\1\x7f", 10) + std::string("\3\0", 2) +
                      "CURVE" + std::string(47, '\0') + "\6";
  for (int shift = 56; shift >= 0; shift -= 8) {
    bytes += static_cast<char>(size >> static_cast<unsigned>(shift));
  }
  return bytes;
}

TEST_CASE("who has no key announces no more than a chunk (DP-7)", "[futures][port][hostile]") {
  TwoPorts two;
  const Connection stranger(two.port->address());
  stranger.write(command_of(std::uint64_t{8} << 20U));
  CHECK(eventually([&] { return stranger.is_ended(); }));
  two.require_work(1);
}

TEST_CASE("many who announce and hold back messages are bounded, and keep nobody out (DP-7)",
          "[futures][port][hostile]") {
  constexpr std::size_t kMore = 60;
  TwoPorts two;
  two.require_work(1);
  std::vector<std::unique_ptr<Connection>> strangers;
  for (std::size_t i = 0; i < kMostStrangers + kMore; ++i) {
    strangers.push_back(std::make_unique<Connection>(two.port->address()));
    strangers.back()->write(command_of(kLargestChunk) + std::string(1000, 'x'));
  }
  const auto ended = [&] {
    return static_cast<std::size_t>(
        std::ranges::count_if(strangers, [](const auto& s) { return s->is_ended(); }));
  };
  CHECK(eventually([&] { return ended() >= kMore; }));
  CHECK(ended() <= kMore + 8);
  CHECK(strangers.front()->is_ended());
  CHECK_FALSE(strangers.back()->is_ended());
  CHECK(two.port->counts().strangers_ended >= static_cast<std::int64_t>(kMore));
  two.require_work(3);
  // A peer with a key gets in although all of them stay.
  RawPeer peer;
  two.port->admit(peer.address());
  peer.connect(*two.port);
  peer.send_frame(0, 8, 8);
  CHECK(two.zero->receive(Rank{1}, kTag).wait_until(patience()));
  CHECK(two.link(peer.address().key).tensors_received == 1);
}

TEST_CASE("who has no key, or one that is not admitted, does not get in (DP-1)",
          "[futures][port]") {
  TwoPorts two;
  RawPeer plain;
  plain.connect(*two.port, /*curve=*/false);
  RawPeer stranger;
  stranger.connect(*two.port);
  plain.send_frame(0, 8, 8);
  stranger.send_frame(0, 8, 8);
  CHECK(eventually([&] { return two.port->counts().connections_held >= 1; }));
  two.require_work(1);
  CHECK(two.zero->bytes_waiting() == 0);

  two.port->admit(stranger.address());
  CHECK(two.zero->receive(Rank{1}, kTag).wait_until(patience()));
  CHECK(two.link(stranger.address().key).tensors_received == 1);
  CHECK(two.port->counts().links.size() == 2);
}

TEST_CASE("a port of another cluster does not get in, and waits", "[futures][port]") {
  TwoPorts two;
  const auto foreign = DataPort::open();
  RoutedNetwork network(foreign, kNetwork, 3);
  network.place(Rank{0}, two.port->address());
  network.endpoint(Rank{2})->send(Rank{0}, kTag, number(9));
  CHECK(eventually([&] { return two.port->counts().connections_held >= 1; }));
  CHECK(two.zero->bytes_waiting() == 0);
  // The address is the same but the key differs, so no server answers to it.
  PortAddress wrong = two.port->address();
  wrong.key = foreign->address().key;
  two.other->admit(wrong);
  two.other->send(wrong, kNetwork, Rank{1}, Rank{0}, kTag, number(10));
  two.require_work(1);
  CHECK(two.zero->bytes_waiting() == 0);
}

TEST_CASE("frames that cannot be read end their link and nothing else (DP-2)", "[futures][port]") {
  std::atomic<int> told = 0;
  std::string why;
  TwoPorts two(
      "tcp://127.0.0.1:*",
      {.largest_tensor = 1 << 20, .when_broken = [&](const std::string&, const Error& error) {
         why = error.what();
         ++told;
       }});
  RawPeer peer;
  two.port->admit(peer.address());
  peer.connect(*two.port);
  peer.send_frame(0, 8, 8);
  CHECK(two.zero->receive(Rank{1}, kTag).wait_until(patience()));
  std::string expected;
  SECTION("one part") {
    peer.send({"x"});
    expected = "1 parts";
  }
  SECTION("many parts") {
    peer.send({"a", "b", "c", "d", "e"});
    expected = "3 parts";
  }
  SECTION("no header") {
    peer.send({"x", "y"});
    expected = "malformed";
  }
  SECTION("a long header") {
    peer.send({std::string(5000, 'x'), "y"});
    expected = "1024 is the most";
  }
  SECTION("larger than allowed") {
    peer.send_frame(1, (1 << 20) + 1, 8);
    expected = "raise largest_tensor";
  }
  SECTION("a gap") {
    peer.send_frame(2, 8, 8);
    expected = "frames were lost";
  }
  CHECK(eventually([&] { return told == 1; }));
  CHECK_THAT(why, ContainsSubstring(expected));
  CHECK_THAT(why, ContainsSubstring(peer.address().key));
  peer.send_frame(1, 8, 8);
  CHECK(eventually([&] { return two.link(peer.address().key).frames_refused == 2; }));
  two.require_work(1);
  CHECK(told == 1);
  CHECK(two.zero->bytes_waiting() == 0);
  CHECK(two.port->counts().partial_bytes == 0);
}

TEST_CASE("memory of what is half here is given back when nobody wants it", "[futures][port]") {
  TwoPorts two;
  RawPeer peer;
  two.port->admit(peer.address());
  peer.connect(*two.port);
  peer.send_frame(0, 5000, 100);
  REQUIRE(eventually([&] { return two.port->counts().partial_bytes == 5000; }));
  SECTION("the epoch is over") {
    two.zero->advance(kTag.plan, Epoch{1}, kWhy);
  }
  SECTION("the end is closed") {
    two.zero->close(kWhy);
  }
  SECTION("the peer is forgotten") {
    two.port->forget(peer.address());
    peer.send_frame(1, 8, 8);
    CHECK(eventually([&] { return two.link(peer.address().key).frames_refused == 1; }));
  }
  SECTION("its link breaks") {
    peer.send({"x", "y"});
  }
  CHECK(eventually([&] { return two.port->counts().partial_bytes == 0; }));
}

TEST_CASE("a port is opened where connections that have ended linger", "[futures][port]") {
  const std::string bind = "tcp://127.0.0.1:" + std::to_string(tests::lingering_port());
  CHECK(DataPort::open({.bind = bind})->address().endpoint == bind);
}

TEST_CASE("what nobody is there for is dropped and counted", "[futures][port]") {
  TwoPorts two;
  SECTION("no such network") {
    two.other->send(two.port->address(), NetworkId{8}, Rank{1}, Rank{0}, kTag, number(1));
  }
  SECTION("no such rank") {
    two.other->send(two.port->address(), kNetwork, Rank{1}, Rank{3}, kTag, number(1));
  }
  SECTION("a sender that is none") {
    two.other->send(two.port->address(), kNetwork, Rank{3}, Rank{0}, kTag, number(1));
  }
  CHECK(eventually([&] { return two.port->counts().tensors_misdirected == 1; }));
  two.require_work(1);
  // A rank of the network that lives in another process gets nothing here.
  two.other->send(two.port->address(), kNetwork, Rank{1}, Rank{1}, kTag, number(1));
  two.require_work(2);
}

TEST_CASE("a network is no more when its last end goes", "[futures][port]") {
  const auto port = DataPort::open({.bind = "ipc://*"});
  auto network = std::make_unique<RoutedNetwork>(port, kNetwork, 1);
  auto end = network->endpoint(Rank{0});
  CHECK(thrown_by([&] { const RoutedNetwork again(port, kNetwork, 1); }) == Errc::UsageArgument);
  network.reset();
  CHECK(thrown_by([&] { const RoutedNetwork again(port, kNetwork, 1); }) == Errc::UsageArgument);
  end.reset();
  CHECK_FALSE(thrown_by([&] { const RoutedNetwork again(port, kNetwork, 1); }));
}

TEST_CASE("a port connects to those that something was sent to (DP-5)", "[futures][port]") {
  const Listener listener;
  TwoPorts two;
  const PortAddress peer{listener.endpoint(), RawPeer().address().key};
  two.port->admit(peer);
  two.require_work(1);  // by then it has connected to another port
  CHECK_FALSE(listener.is_asked(0));
  two.port->send(peer, kNetwork, Rank{0}, Rank{2}, kTag, number(3));
  CHECK(listener.is_asked(30'000));
}

TEST_CASE("a peer that does not read holds up nobody else, and what waits can be dropped (DP-3)",
          "[futures][port]") {
  TwoPorts two;
  const MutePeer mute;
  two.network.place(Rank{2}, mute.address());
  const at::Tensor large = at::ones({1 << 20}, at::kByte);
  constexpr int kMany = 64;
  for (int i = 0; i < kMany; ++i) {
    two.zero->send(Rank{2}, kTag, large);
  }
  two.require_work(1);
  two.port->forget(mute.address());
  CHECK(eventually([&] { return two.link(mute.address().key).tensors_dropped > 0; }));
  const LinkCounts link = two.link(mute.address().key);
  CHECK(link.tensors_dropped + link.tensors_sent == kMany);
  two.zero->send(Rank{2}, kTag, number(1));
  CHECK(eventually(
      [&] { return two.link(mute.address().key).tensors_dropped == link.tensors_dropped + 1; }));
  CHECK(eventually([&] { return large.use_count() == 1; }));
  two.require_work(2);
}

/// Records the unreachable peers that a port reports.
struct Cuts {
  std::atomic<int> told = 0;
  std::string key, why;

  DataPortOptions options(std::chrono::milliseconds silence) {
    return {.silence = silence, .when_cut = [this](const std::string& peer, const Error& error) {
              key = peer;
              why = error.what();
              ++told;
            }};
  }
};

TEST_CASE("a peer whose connection ends with what was sent to it is told of, once (DP-6)",
          "[futures][port]") {
  Cuts cuts;
  TwoPorts two("tcp://127.0.0.1:*", cuts.options(std::chrono::minutes(1)));
  two.require_work(1);
  const PortAddress gone = two.other->address();
  two.one.reset();
  two.other->close();
  CHECK(eventually([&] { return cuts.told == 1; }));
  CHECK(cuts.key == gone.key);
  CHECK_THAT(cuts.why, ContainsSubstring(gone.endpoint) && ContainsSubstring("was reset"));
  two.zero->send(Rank{1}, kTag, number(2));
  const auto later = DataPort::open();
  two.port->admit(later->address());
  later->close();  // a port that was sent nothing
  two.port->forget(later->address());
  CHECK(cuts.told == 1);
}

TEST_CASE("a peer that cannot be connected to is told of when there is something for it (DP-6)",
          "[futures][port]") {
  Cuts cuts;
  TwoPorts two("tcp://127.0.0.1:*", cuts.options(std::chrono::milliseconds(200)));
  const RawPeer nobody;
  two.network.place(Rank{2}, nobody.address());
  two.require_work(1);
  CHECK(cuts.told == 0);
  two.zero->send(Rank{2}, kTag, number(1));
  CHECK(eventually([&] { return cuts.told == 1; }));
  CHECK(cuts.key == nobody.address().key);
  CHECK_THAT(cuts.why, ContainsSubstring("tcp://127.0.0.1:1") && ContainsSubstring("for 200 ms"));
  two.require_work(2);
}

TEST_CASE("a port with much to send closes, and lets go of it (DP-4)", "[futures][port]") {
  const at::Tensor large = at::ones({1 << 20}, at::kByte);
  {
    TwoPorts two;
    const MutePeer mute;
    two.network.place(Rank{2}, mute.address());
    two.port->admit({"tcp://127.0.0.1:1", mute.address().key.substr(0, 39) + "0"});
    for (int i = 0; i < 32; ++i) {
      two.zero->send(Rank{2}, kTag, large);
    }
    two.port->close();
    two.port->close();
    two.zero->send(Rank{1}, kTag, large);
    two.port->admit(two.other->address());
    two.port->forget(two.other->address());
  }
  CHECK(large.use_count() == 1);
}

TEST_CASE("a port may be let go of by a callback of its own", "[futures][port]") {
  auto two = std::make_shared<TwoPorts>();
  auto one = two->one;
  const Future<at::Tensor> arrival = two->zero->receive(Rank{1}, kTag);
  std::atomic<bool> gone = false;
  auto zero = two->zero;
  std::weak_ptr<DataPort> port = two->port;
  arrival.on_ready([&gone, holder = std::exchange(two, nullptr)]() mutable {
    holder.reset();
    gone = true;
  });
  zero.reset();
  one->send(Rank{0}, kTag, number(4));
  CHECK(number_from(arrival) == 4);
  CHECK(eventually([&] { return gone.load(); }));
  CHECK(eventually([&] { return port.expired(); }));
}

TEST_CASE("bytes and tensors are counted by peer", "[futures][port]") {
  TwoPorts two("ipc://*");
  two.zero->send(Rank{1}, kTag, at::ones({1'000'000}, at::kByte));
  two.zero->send(Rank{1}, kTag, at::empty({0}));
  CHECK(two.one->receive(Rank{0}, kTag).wait_until(patience()));
  CHECK(two.one->receive(Rank{0}, kTag).wait_until(patience()));
  const LinkCounts sent = two.link(two.other->address().key);
  CHECK(sent.tensors_sent == 2);
  CHECK(sent.bytes_sent == 1'000'000);
  const LinkCounts received = two.other->counts().links[two.port->address().key];
  CHECK(received.tensors_received == 2);
  CHECK(received.bytes_received == 1'000'000);
  CHECK(received.frames_refused == 0);
}

TEST_CASE("what arrives has no autograd, and what no frame can hold is refused",
          "[futures][port]") {
  TwoPorts two("ipc://*", {.largest_tensor = 1000});
  const at::Tensor leaf = at::ones({2}).requires_grad_();
  two.zero->send(Rank{1}, kTag, leaf);
  two.zero->send(Rank{1}, kTag, leaf.mul(2).view({2, 1}).t());
  for (int i = 0; i < 2; ++i) {
    const auto arrival = two.one->receive(Rank{0}, kTag);
    REQUIRE(arrival.wait_until(patience()));
    CHECK_FALSE(arrival.get().requires_grad());
    CHECK(arrival.get().is_contiguous());
  }
  CHECK(leaf.requires_grad());

  const auto says = [&](const at::Tensor& tensor, const std::string& what) {
    CHECK_THROWS_WITH(two.zero->send(Rank{1}, kTag, tensor), ContainsSubstring(what));
    CHECK(thrown_by([&] { two.zero->send(Rank{1}, kTag, tensor); }) == Errc::TransportRefused);
  };
  says(at::quantize_per_tensor(at::ones({2}), 1.0, 0, at::kQInt8), "dense tensors that are not");
  says(at::ones({2}).to_sparse(), "dense tensors");
  says(at::empty({2}, at::TensorOptions().device(at::kMeta)), "move it to the CPU");
  says(at::empty({1001}, at::kByte), "1001 bytes are more than 1000: raise largest_tensor");
  says(at::ones(std::vector<std::int64_t>(65, 1)), "it has 65 dimensions");
  two.require_work(1);
}

TEST_CASE("addresses and options that make no sense are refused", "[futures][port]") {
  const auto refused = [](DataPortOptions options, Errc code, const std::string& what) {
    CHECK_THROWS_WITH(DataPort::open(options), ContainsSubstring(what));
    CHECK(thrown_by([&] { static_cast<void>(DataPort::open(options)); }) == code);
  };
  const auto port = DataPort::open();
  refused({.bind = "nowhere"}, Errc::TransportRefused, "cannot listen on nowhere");
  refused({.bind = "tcp://192.0.2.1:*"}, Errc::TransportRefused, "an address of this host");
  refused({.bind = port->address().endpoint}, Errc::TransportRefused, "a port that is free");
  refused({.largest_tensor = 0}, Errc::UsageArgument, "largest_tensor is 0");
  refused({.chunk_bytes = 0}, Errc::UsageArgument, "chunk_bytes is 0");
  refused({.chunk_bytes = kLargestChunk + 1}, Errc::UsageArgument, "chunk_bytes is");
  refused({.io_threads = 0}, Errc::UsageArgument, "io_threads is 0");

  const std::string key = DataPort::open({.bind = "ipc://*"})->address().key;
  const auto not_admitted = [&](const PortAddress& peer, const std::string& what) {
    CHECK_THROWS_WITH(port->admit(peer), ContainsSubstring(what));
  };
  not_admitted({"nowhere://127.0.0.1:99", key}, "cannot connect to nowhere://127.0.0.1:99");
  not_admitted({"", key}, "an address that a port gave");
  not_admitted({"tcp://127.0.0.1:80", ""}, "no CURVE public key");
  not_admitted({"tcp://127.0.0.1:80", key + "0"}, "no CURVE public key");
  not_admitted({"tcp://127.0.0.1:80", std::string(40, '~')}, "no CURVE public key");

  TwoPorts two;
  CHECK_THROWS_WITH(two.network.endpoint(Rank{1}),
                    ContainsSubstring("rank 1 is in the process of"));
  CHECK(thrown_by([&] { static_cast<void>(two.network.endpoint(Rank{3})); }) ==
        Errc::TransportRefused);
  CHECK(thrown_by([&] { two.network.place(Rank{3}, two.other->address()); }) ==
        Errc::TransportRefused);
  CHECK_FALSE(thrown_by([&] { two.network.place(Rank{0}, two.port->address()); }));
  CHECK(thrown_by([&] { two.network.place(Rank{1}, two.port->address()); }) == Errc::UsageArgument);
}

}  // namespace
}  // namespace stagecraft
