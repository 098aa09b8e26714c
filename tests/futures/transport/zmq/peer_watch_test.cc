#include "stagecraft/futures/transport/zmq/peer_watch.h"

#include <atomic>
#include <chrono>
#include <string>

#include "stagecraft/tests/futures/transport/zmq/raw_peer.h"
#include "stagecraft/tests/futures/transport/zmq/two_ports.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

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

TEST_CASE("a peer whose connection ends after a send is reported once (DP-6)", "[futures][port]") {
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

TEST_CASE("an unreachable peer is reported when something waits for it (DP-6)", "[futures][port]") {
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

}  // namespace
}  // namespace stagecraft
