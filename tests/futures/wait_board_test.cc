#include "stagecraft/futures/wait_board.h"

#include <future>

#include "stagecraft/base/manual_clock.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft {
namespace {

using namespace std::chrono_literals;

/// Two peers that have not delivered, and a board by a clock of the test.
struct Waiting {
  const std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>();
  WaitBoard board{clock};
  Promise<at::Tensor> first, second;

  std::future<bool> begin(Clock::Time::duration patience) {
    auto waited = std::async(std::launch::async, [this, deadline = clock->now() + patience] {
      return board.wait({{Rank(3), first.future()}, {Rank(1), second.future()}}, deadline);
    });
    REQUIRE(eventually([this] { return clock->waits() == 1; }));
    return waited;
  }
};

TEST_CASE("a board lists those that have not delivered, in the order of the wait (WB-1)",
          "[futures][wait_board]") {
  Waiting w;
  CHECK(w.board.missing().empty());
  auto waited = w.begin(1h);
  CHECK((w.board.missing() == std::vector{Rank(3), Rank(1)}));
  w.second.set_value(number(1));
  CHECK((w.board.missing() == std::vector{Rank(3)}));
  w.first.set_value(number(3));
  CHECK(waited.get());
  CHECK(w.board.missing().empty());
}

TEST_CASE("a wait ends at its deadline by the board's clock, and is no longer listed",
          "[futures][wait_board]") {
  Waiting w;
  auto waited = w.begin(5min);
  w.clock->advance(5min - 1ms);
  CHECK(w.board.missing().size() == 2);
  w.clock->advance(1ms);
  CHECK_FALSE(waited.get());
  CHECK(w.board.missing().empty());
}

TEST_CASE("a peer that fails ends the wait for it", "[futures][wait_board]") {
  Waiting w;
  auto waited = w.begin(1h);
  w.first.set_error(Error(Errc::TransportClosed, "gone"));
  CHECK((w.board.missing() == std::vector{Rank(1)}));
  w.second.set_value(number(1));
  CHECK(waited.get());
}

TEST_CASE("nobody is listed while all have delivered", "[futures][wait_board]") {
  Waiting w;
  w.first.set_value(number(3));
  CHECK(w.board.wait({{Rank(3), w.first.future()}}, w.clock->now()));
  CHECK_FALSE(w.board.wait({{Rank(1), w.second.future()}}, w.clock->now()));
}

}  // namespace
}  // namespace stagecraft
