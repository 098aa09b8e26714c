#include "stagecraft/actors/remote/wire/message_stream.h"

#include <algorithm>
#include <optional>
#include <thread>
#include <vector>

#include <ATen/ops/ones.h>

#include "stagecraft/actors/remote/wire/payload_transfer.h"
#include "stagecraft/actors/remote/wire/remote_tags.h"
#include "stagecraft/futures/transport/inproc.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft {
namespace {

/// A driver and a rank, each with an end of a stream.
struct Ends {
  InprocNetwork network{1};
  std::shared_ptr<Transport> driver_end = network.endpoint(kDriver);
  std::shared_ptr<Transport> rank_end = network.endpoint(Rank(0));
  std::shared_ptr<MessageStream> driver =
      std::make_shared<MessageStream>(driver_end, Rank(0), Epoch(1));
  std::shared_ptr<MessageStream> rank =
      std::make_shared<MessageStream>(rank_end, Rank(0), Epoch(1));
  std::vector<std::int64_t> taken;
  std::optional<Errc> ended;

  void listen() {
    rank->listen([this](RemoteMessage m) { taken.push_back(std::get<WantValue>(m).value.value); },
                 [this](const Error& error) { ended = error.code(); });
  }
  ~Ends() { close(); }
  void close() {
    driver_end->close(Error(Errc::Cancelled, "over"));
    rank_end->close(Error(Errc::Cancelled, "over"));
  }
};

TEST_CASE("messages come in the order in which they were sent, many before anybody listens (MG-1)",
          "[remote][stream]") {
  Ends ends;
  constexpr int kMany = 20'000;  // more than the stack holds calls
  for (int i = 0; i < kMany; ++i) {
    ends.driver->send(WantValue{CallId(i)});
  }
  ends.listen();
  for (int i = kMany; i < 2 * kMany; ++i) {
    ends.driver->send(WantValue{CallId(i)});
  }
  REQUIRE(ends.taken.size() == 2 * kMany);
  for (int i = 0; i < 2 * kMany; ++i) {
    REQUIRE(ends.taken[static_cast<std::size_t>(i)] == i);
  }
}

TEST_CASE("a message whose tensors are late holds back those behind it (MG-1)",
          "[remote][stream]") {
  Ends ends;
  std::vector<std::size_t> kinds;
  ends.rank->listen([&](RemoteMessage m) { kinds.push_back(m.index()); }, [](const Error&) {});
  const RemoteMessage outcome = Outcome{.call = CallId(1), .error = {}, .value = pack(at::ones(3))};
  Payload first = pack(outcome);
  const at::Tensor late = first.tensors.front();
  // The parts of the first message by hand, its tensor after the second message.
  const InprocNetwork other(1);
  send_payload(
      *other.endpoint(kDriver), Rank(0), message_tag(Rank(0), Epoch(1), 0), std::move(first));
  const auto head =
      other.endpoint(Rank(0))->receive(kDriver, message_tag(Rank(0), Epoch(1), 0)).get();
  ends.driver_end->send(Rank(0), message_tag(Rank(0), Epoch(1), 0), head);
  send_payload(*ends.driver_end,
               Rank(0),
               message_tag(Rank(0), Epoch(1), 1),
               pack(RemoteMessage(WantValue{CallId(2)})));
  CHECK(kinds.empty());
  Tag tag = message_tag(Rank(0), Epoch(1), 0);
  tag.microbatch = Microbatch(1);
  ends.driver_end->send(Rank(0), tag, late);
  CHECK(kinds == std::vector<std::size_t>{outcome.index(), RemoteMessage(WantValue{}).index()});
}

TEST_CASE("a stream ends once, with the close or a message that cannot be read (MG-3)",
          "[remote][stream]") {
  Ends ends;
  ends.listen();
  ends.driver->send(WantValue{CallId(1)});
  Errc expected = Errc::TransportClosed;
  SECTION("closed") {}
  SECTION("no message") {
    ends.driver_end->send(Rank(0), message_tag(Rank(0), Epoch(1), 1), at::ones({20}, at::kByte));
    expected = Errc::WireFormat;
  }
  SECTION("told by the other end") {
    ends.driver->send(StreamNotice{});  // takes the place of a message
    ends.driver->send(StreamNotice{to_chain(Error(Errc::WorkerLost, "no more"))});
    ends.driver->send(WantValue{CallId(2)});
    expected = Errc::WorkerLost;
  }
  SECTION("no bytes") {
    ends.driver_end->send(Rank(0), message_tag(Rank(0), Epoch(1), 1), at::ones({2}));
    expected = Errc::WireFormat;
  }
  ends.close();
  CHECK(ends.ended == expected);
  CHECK(ends.taken == std::vector<std::int64_t>{1});
}

TEST_CASE("threads may send at once; every message comes once", "[remote][stream]") {
  Ends ends;
  ends.listen();
  constexpr int kEach = 2'000;
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        ends.driver->send(WantValue{CallId(t * kEach + i)});
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  std::vector<std::int64_t> sorted = ends.taken;
  std::sort(sorted.begin(), sorted.end());
  REQUIRE(sorted.size() == 2 * kEach);
  for (int i = 0; i < 2 * kEach; ++i) {
    REQUIRE(sorted[static_cast<std::size_t>(i)] == i);
  }
}

}  // namespace
}  // namespace stagecraft
