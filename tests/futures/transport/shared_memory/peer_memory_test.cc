/// Tests tensors between data ports that share memory: which way each takes, that the order stays,
/// and that nothing is left when a process is killed.
#include "stagecraft/futures/transport/shared_memory/peer_memory.h"

#include <sys/prctl.h>
#include <sys/wait.h>

#include <array>
#include <atomic>
#include <csignal>
#include <fstream>
#include <future>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "stagecraft/tests/futures/transport/shared_memory/arenas.h"
#include "stagecraft/tests/futures/transport/zmq/two_ports.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using testing::bytes_from;
using testing::kMebi;

constexpr std::int64_t kLarge = kMebi;

Tag numbered(std::int64_t number, int edge = 0) {
  return {.epoch = Epoch{0}, .submission = Submission{number}, .edge = EdgeId{edge}};
}

/// Two processes of one host that have begun to share memory.
struct Sharing : TwoPorts {
  explicit Sharing(std::int64_t bytes = 64 * kMebi)
      : TwoPorts("tcp://127.0.0.1:*", {.shared_memory = bytes}) {
    REQUIRE(eventually([this] {
      (void)pass(-1, kLarge);
      return shared() > 0;
    }));
  }

  at::Tensor pass(std::int64_t number, std::int64_t bytes) {
    zero->send(Rank{1}, numbered(number), bytes_from(number, bytes));
    const auto future = one->receive(Rank{0}, numbered(number));
    REQUIRE(future.wait_until(patience()));
    return future.get();
  }
  [[nodiscard]] std::int64_t shared() const { return link(other->address().key).bytes_shared; }
};

TEST_CASE("tensors of a host go through shared memory, large ones in slots, small ones in a ring",
          "[futures][shared_memory]") {
  Sharing two;
  std::int64_t number = 0;
  for (const std::int64_t bytes :
       {kLarge, PeerMemory::kSmallest - 1, PeerMemory::kSmallest, std::int64_t{1}}) {
    const std::int64_t before = two.shared();
    ++number;
    CHECK(two.pass(number, bytes).equal(bytes_from(number, bytes)));
    CHECK(two.shared() == before + bytes);
  }
  CHECK(two.pass(number + 1, 0).numel() == 0);
}

TEST_CASE("small tensors alone make two processes of a host share memory",
          "[futures][shared_memory]") {
  TwoPorts two("tcp://127.0.0.1:*", {.shared_memory = kLarge});
  CHECK(two.zero->route_to(Rank{1}) == Route::Unused);
  two.require_work(1);
  CHECK(two.zero->route_to(Rank{1}) != Route::Unused);
  std::int64_t value = 1;
  CHECK(eventually([&] {
    two.require_work(++value);
    return two.zero->route_to(Rank{1}) == Route::SharedMemory;
  }));
  CHECK(two.link(two.other->address().key).bytes_shared > 0);
  two.require_work(++value);
}

TEST_CASE("tensors of all sizes keep their order, also when ring and slots are full (T-1)",
          "[futures][shared_memory]") {
  constexpr int kCount = 600;
  Sharing two(2 * kLarge);
  const LinkCounts before = two.link(two.other->address().key);
  std::mt19937 random(11);
  std::vector<std::int64_t> sizes;
  for (int i = 0; i < kCount; ++i) {
    const std::int64_t most = i % 7 == 0 ? kLarge : 2 * PeerMemory::kSmallest;
    sizes.push_back(static_cast<std::int64_t>(random()) % most);
    two.zero->send(Rank{1}, kTag, bytes_from(i, sizes.back()));
  }
  std::vector<at::Tensor> held;  // keeps slots in use
  for (int i = 0; i < kCount; ++i) {
    const auto future = two.one->receive(Rank{0}, kTag);
    REQUIRE(future.wait_until(patience()));
    REQUIRE(future.get().equal(bytes_from(i, sizes[static_cast<std::size_t>(i)])));
    held.push_back(future.get());
  }
  const LinkCounts after = two.link(two.other->address().key);
  CHECK(after.bytes_shared - before.bytes_shared < after.bytes_sent - before.bytes_sent);
}

TEST_CASE("tensors of one tag keep their order when the slots do not suffice (T-1)",
          "[futures][shared_memory]") {
  constexpr int kCount = 9;
  Sharing two(2 * kLarge);
  const LinkCounts before = two.link(two.other->address().key);
  std::vector<at::Tensor> held;
  for (int i = 0; i < kCount; ++i) {
    two.zero->send(Rank{1}, kTag, bytes_from(i, i % 3 == 0 ? kLarge / 2 : kLarge));
  }
  for (int i = 0; i < kCount; ++i) {
    const auto future = two.one->receive(Rank{0}, kTag);
    REQUIRE(future.wait_until(patience()));
    held.push_back(future.get());
    CHECK(held.back().equal(bytes_from(i, i % 3 == 0 ? kLarge / 2 : kLarge)));
  }
  const LinkCounts after = two.link(two.other->address().key);
  CHECK(after.bytes_shared > before.bytes_shared);
  CHECK(after.bytes_shared - before.bytes_shared < after.bytes_sent - before.bytes_sent);
}

TEST_CASE("a peer that shares no memory gets its tensors through the socket",
          "[futures][shared_memory]") {
  TwoPorts two("ipc://*");
  const auto here = DataPort::open({.bind = "ipc://*", .shared_memory = kLarge});
  RoutedNetwork network(here, kNetwork, 3);
  network.place(Rank{1}, two.other->address());
  two.other_network.place(Rank{2}, here->address());
  const auto end = network.endpoint(Rank{2});
  for (int i = 0; i < 3; ++i) {
    end->send(Rank{1}, kTag, bytes_from(i, kLarge));
    const auto future = two.one->receive(Rank{2}, kTag);
    REQUIRE(future.wait_until(patience()));
    CHECK(future.get().equal(bytes_from(i, kLarge)));
  }
  CHECK(end->route_to(Rank{1}) == Route::Socket);
  CHECK(here->counts().links[two.other->address().key].bytes_shared == 0);
}

TEST_CASE("what nobody wants, and what the driver gets, gives its slot back at once",
          "[futures][shared_memory]") {
  Sharing two(2 * kLarge);
  const std::int64_t before = two.shared();
  SECTION("tensors of an epoch that is over") {
    two.one->advance(PlanId{}, Epoch{1}, Error(Errc::WorkerAborted, "the test ends the epoch"));
    for (std::uint64_t i = 1; i <= 6; ++i) {
      two.zero->send(Rank{1}, kTag, bytes_from(0, kLarge));
      REQUIRE(eventually([&] { return two.one->refused() == i; }));
    }
  }
  SECTION("tensors that the driver keeps") {
    const auto driver = two.other_network.endpoint(kDriver);
    two.network.place(kDriver, two.other->address());
    std::vector<at::Tensor> kept;
    for (int i = 0; i < 6; ++i) {
      two.zero->send(kDriver, kTag, bytes_from(i, kLarge));
      const auto future = driver->receive(Rank{0}, kTag);
      REQUIRE(future.wait_until(patience()));
      kept.push_back(future.get());
    }
    for (int i = 0; i < 6; ++i) {
      CHECK(kept[static_cast<std::size_t>(i)].equal(bytes_from(i, kLarge)));
    }
  }
  CHECK(two.shared() == before + 6 * kLarge);
}

TEST_CASE("a frame that names memory that was not offered breaks its link alone",
          "[futures][shared_memory]") {
  std::promise<std::string> broken;
  TwoPorts two("tcp://127.0.0.1:*",
               {.shared_memory = kLarge, .when_broken = [&](const std::string&, const Error& why) {
                  broken.set_value(why.what());
                }});
  RawPeer raw;
  two.port->admit(raw.address());
  raw.connect(*two.port);
  FrameHeader header = decode_frame(RawPeer::frame(0, kLarge, 1).front());
  header.chunk = kLarge;
  header.slot = SlotRef{
      .arena = ArenaId{77}, .number = 0, .offset = MemoryFile::kFirstSlot, .capacity = kLarge};
  raw.send({encode_frame(header), ""});
  CHECK_THAT(broken.get_future().get(),
             Catch::Matchers::ContainsSubstring("memory that was not offered"));
  two.require_work(5);
}

TEST_CASE("a received tensor outlives both ports", "[futures][shared_memory]") {
  at::Tensor kept;
  {
    Sharing two;
    kept = two.pass(8, kLarge);
    two.port->close();
    two.other->close();
  }
  CHECK(kept.equal(bytes_from(8, kLarge)));
}

TEST_CASE("with tensors held for random times, all arrive whole and slots suffice",
          "[futures][shared_memory]") {
  constexpr int kTensors = 400, kHeld = 6;
  constexpr std::int64_t kMost = 40 * 4096;
  // A slot is at most twice as large as its tensor. Slots that are free and too small for the next
  // tensor count too: sizes have at most 14 classes here.
  Sharing two((kHeld + 1 + 14) * 2 * kMost + 2 * kLarge);
  std::mt19937 random(7);
  std::vector<std::pair<std::int64_t, at::Tensor>> held;
  const LinkCounts before = two.link(two.other->address().key);
  for (std::int64_t i = 0; i < kTensors; ++i) {
    const std::int64_t bytes = PeerMemory::kSmallest + static_cast<std::int64_t>(random()) %
                                                           (kMost - PeerMemory::kSmallest);
    held.emplace_back(i, two.pass(i, bytes));
    while (held.size() > kHeld || (!held.empty() && random() % 3 == 0)) {
      const auto at = held.begin() + static_cast<std::ptrdiff_t>(random() % held.size());
      const auto [number, tensor] = *at;
      CHECK(tensor.equal(bytes_from(number, tensor.numel())));
      std::thread([dropped = std::move(*at)] {}).join();
      held.erase(at);
    }
  }
  const LinkCounts after = two.link(two.other->address().key);
  CHECK(after.bytes_shared - before.bytes_shared == after.bytes_sent - before.bytes_sent);
}

/// Returns how much of `/proc/self/maps` is shared memory of ports.
std::size_t mapped_arenas() {
  std::ifstream maps("/proc/self/maps");
  std::size_t count = 0;
  for (std::string line; std::getline(maps, line);) {
    count += line.find("/memfd:stagecraft") != std::string::npos ? 1 : 0;
  }
  return count;
}

constexpr std::int64_t kOnTheirWay = 5;

/// Every third tensor is small, and goes through the ring.
std::int64_t bytes_of(std::int64_t number) {
  return number % 3 == 0 ? 300 : 300'000;
}

/// Runs in a process of its own: sends numbered tensors, some ahead of the answers, until it is
/// killed.
[[noreturn]] void send_for_ever(int to_parent, int from_parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const auto port = DataPort::open({.shared_memory = 64 * kMebi});
  RoutedNetwork network(port, kNetwork, 2);
  std::array<char, 128> told{};
  const PortAddress& own = port->address();
  std::copy(own.endpoint.begin(), own.endpoint.end(), told.begin());
  std::copy(own.key.begin(), own.key.end(), told.begin() + 64);
  if (write(to_parent, told.data(), told.size()) != static_cast<ssize_t>(told.size()) ||
      read(from_parent, told.data(), told.size()) != static_cast<ssize_t>(told.size())) {
    _exit(1);
  }
  network.place(Rank{0}, {told.data(), std::string(told.data() + 64, 40)});
  const auto end = network.endpoint(Rank{1});
  for (std::int64_t i = 0;; ++i) {
    if (i >= kOnTheirWay) {
      (void)end->receive(Rank{0}, numbered(i - kOnTheirWay)).get();
    }
    end->send(Rank{0}, numbered(i), bytes_from(i, bytes_of(i)));
  }
}

TEST_CASE("a sender that is killed at any time leaves its tensors whole, and then nothing",
          "[futures][shared_memory][faults]") {
  std::mt19937 random(3);
  for (int round = 0; round < 8; ++round) {
    std::array<int, 2> up{}, down{};
    REQUIRE((pipe(up.data()) == 0 && pipe(down.data()) == 0));
    const Descriptor from_child(up[0]), to_parent(up[1]), from_parent(down[0]), to_child(down[1]);
    const pid_t child = fork();
    if (child == 0) {
      send_for_ever(up[1], down[0]);
    }
    const auto port = DataPort::open({.shared_memory = 64 * kMebi});
    const std::size_t before = mapped_arenas();  // its own, in which it lends
    RoutedNetwork network(port, kNetwork, 2);
    std::array<char, 128> told{};
    REQUIRE(read(up[0], told.data(), told.size()) == static_cast<ssize_t>(told.size()));
    const PortAddress theirs{told.data(), std::string(told.data() + 64, 40)};
    network.place(Rank{1}, theirs);
    told = {};
    const PortAddress& own = port->address();
    std::copy(own.endpoint.begin(), own.endpoint.end(), told.begin());
    std::copy(own.key.begin(), own.key.end(), told.begin() + 64);
    REQUIRE(write(down[1], told.data(), told.size()) == static_cast<ssize_t>(told.size()));
    const auto end = network.endpoint(Rank{0});
    std::vector<std::pair<std::int64_t, at::Tensor>> held;
    const auto last = 20 + static_cast<std::int64_t>(random() % 40);
    for (std::int64_t i = 0; i < last; ++i) {
      const auto future = end->receive(Rank{1}, numbered(i));
      REQUIRE(future.wait_until(patience()));
      if (random() % 4 == 0) {
        held.emplace_back(i, future.get());
      }
      end->send(Rank{1}, numbered(i), number(i));
    }
    CHECK(mapped_arenas() > before);
    REQUIRE(kill(child, SIGKILL) == 0);
    REQUIRE(waitpid(child, nullptr, 0) == child);
    for (const auto& [number, tensor] : held) {
      CHECK(tensor.equal(bytes_from(number, bytes_of(number))));
    }
    port->forget(theirs);
    held.clear();
    end->close(Error(Errc::TransportClosed, "the round is over"));
    CHECK(eventually([&] { return mapped_arenas() == before; }));
  }
}

}  // namespace
}  // namespace stagecraft
