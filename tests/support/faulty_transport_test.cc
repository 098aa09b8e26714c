#include "stagecraft/tests/support/faulty_transport.h"

#include "stagecraft/futures/transport/inproc.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft {
namespace {

const Error kInjected(Errc::DeviceFailed, "injected");

Tag tag(int microbatch) {
  return {.epoch = Epoch{0},
          .submission = Submission{1},
          .edge = EdgeId{2},
          .microbatch = Microbatch{microbatch}};
}

struct Pair {
  InprocNetwork network{2};
  FaultyTransport sender{network.endpoint(Rank{0})};
  FaultyTransport receiver{network.endpoint(Rank{1})};
};

TEST_CASE("a dropped send never arrives, the others do", "[futures][transport]") {
  Pair pair;
  pair.sender.drop_send(2);
  for (int m = 0; m < 3; ++m) {
    pair.sender.send(Rank{1}, tag(0), number(m));
  }
  CHECK(pair.receiver.bytes_waiting() == 16);
  CHECK(number_from(pair.receiver.receive(Rank{0}, tag(0))) == 0);
  CHECK(number_from(pair.receiver.receive(Rank{0}, tag(0))) == 2);
}

TEST_CASE("a dropped receive stays open until its epoch ends", "[futures][transport]") {
  Pair pair;
  pair.receiver.drop_receive(1);
  const Future<at::Tensor> dropped = pair.receiver.receive(Rank{0}, tag(0));
  pair.sender.send(Rank{1}, tag(0), number(1));
  CHECK_FALSE(dropped.ready());
  CHECK(pair.receiver.bytes_waiting() == 8);
  pair.receiver.advance(PlanId{}, Epoch{1}, kInjected);
  CHECK(failure_of(dropped) == Errc::WorkerAborted);
}

TEST_CASE("a failing send or receive throws what it was told, once", "[futures][transport]") {
  Pair pair;
  pair.sender.fail_send(2, kInjected);
  pair.sender.send(Rank{1}, tag(0), number(0));
  CHECK(thrown_by([&] { pair.sender.send(Rank{1}, tag(1), number(1)); }) == Errc::DeviceFailed);
  CHECK_FALSE(thrown_by([&] { pair.sender.send(Rank{1}, tag(1), number(2)); }));

  pair.receiver.fail_receive(1, kInjected);
  CHECK(thrown_by([&] { static_cast<void>(pair.receiver.receive(Rank{0}, tag(0))); }) ==
        Errc::DeviceFailed);
  CHECK(number_from(pair.receiver.receive(Rank{0}, tag(0))) == 0);
  CHECK(number_from(pair.receiver.receive(Rank{0}, tag(1))) == 2);
}

TEST_CASE("held sends arrive in their order after their release", "[futures][transport]") {
  Pair pair;
  pair.sender.hold_sends();
  for (int m = 0; m < 3; ++m) {
    pair.sender.send(Rank{1}, tag(0), number(m));
  }
  CHECK(pair.sender.sends_held() == 3);
  CHECK(pair.receiver.bytes_waiting() == 0);
  pair.sender.release_sends();
  CHECK(pair.sender.sends_held() == 0);
  pair.sender.send(Rank{1}, tag(0), number(3));
  for (int m = 0; m < 4; ++m) {
    CHECK(number_from(pair.receiver.receive(Rank{0}, tag(0))) == m);
  }
}

TEST_CASE("a tensor that is held until its epoch is over is refused", "[futures][transport]") {
  Pair pair;
  pair.sender.hold_sends();
  pair.sender.send(Rank{1}, tag(0), number(1));
  pair.receiver.advance(PlanId{}, Epoch{1}, kInjected);
  pair.sender.release_sends();
  CHECK(pair.receiver.refused() == 1);
  CHECK(pair.receiver.bytes_waiting() == 0);
}

TEST_CASE("closing drops held sends", "[futures][transport]") {
  Pair pair;
  const at::Tensor watched = number(1);
  pair.sender.hold_sends();
  pair.sender.send(Rank{1}, tag(0), watched);
  pair.sender.close(kInjected);
  CHECK(pair.sender.sends_held() == 0);
  CHECK(watched.use_count() == 1);
  CHECK_FALSE(thrown_by([&] { pair.sender.release_sends(); }));
  CHECK(pair.receiver.bytes_waiting() == 0);
}

}  // namespace
}  // namespace stagecraft
