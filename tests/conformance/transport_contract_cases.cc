#include <atomic>
#include <cstddef>
#include <optional>
#include <utility>

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>

#include "stagecraft/tests/conformance/transport_cases.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft::conformance {
namespace {

/// Returns the code of the cause of a future's failure.
std::optional<Errc> cause_of(const Future<at::Tensor>& future) {
  try {
    static_cast<void>(future.get());
  } catch (const Error& error) {
    return error.cause() == nullptr ? std::nullopt : std::optional(error.cause()->code());
  }
  return std::nullopt;
}

void receive_after_arrival(const MakeEndpoints& make) {
  const Endpoints net = make(2);
  net.ranks[0]->send(Rank{1}, on_edge(3), number(42));
  REQUIRE(eventually([&] { return net.ranks[1]->bytes_waiting() == 8; }));
  const Future<at::Tensor> arrival = net.ranks[1]->receive(Rank{0}, on_edge(3));
  CHECK(arrival.ready());
  CHECK(number_from(arrival) == 42);
  CHECK(net.ranks[1]->bytes_waiting() == 0);
}

void receive_before_arrival(const MakeEndpoints& make) {
  const Endpoints net = make(2);
  const Future<at::Tensor> arrival = net.ranks[1]->receive(Rank{0}, on_edge(3));
  CHECK_FALSE(arrival.ready());
  net.ranks[0]->send(Rank{1}, on_edge(3), number(42));
  CHECK(number_from(arrival) == 42);
  CHECK(net.ranks[1]->bytes_waiting() == 0);
}

void fifo(const MakeEndpoints& make) {
  const Endpoints net = make(2);
  std::vector<Future<at::Tensor>> arrivals;
  const auto post = [&](int count) {
    for (int i = 0; i < count; ++i) {
      arrivals.push_back(net.ranks[1]->receive(Rank{0}, on_edge(3)));
    }
  };
  post(3);
  for (int i = 0; i < 9; ++i) {
    net.ranks[0]->send(Rank{1}, on_edge(3), number(i));
  }
  post(6);
  for (int i = 0; i < 9; ++i) {
    CHECK(number_from(arrivals[static_cast<std::size_t>(i)]) == i);
  }
}

void tags_do_not_mix(const MakeEndpoints& make) {
  const Endpoints net = make(3);
  const Tag base = on_edge(3);
  std::vector<Tag> tags(6, base);
  tags[1].edge = EdgeId{4};
  tags[2].microbatch = Microbatch{1};
  tags[3].submission = Submission{8};
  tags[4].epoch = Epoch{1};
  tags[5].plan = PlanId{1};
  for (std::size_t i = 0; i < tags.size(); ++i) {
    net.ranks[0]->send(Rank{2}, tags[i], number(static_cast<int>(i)));
  }
  net.ranks[1]->send(Rank{2}, base, number(100));
  for (std::size_t i = tags.size(); i-- > 0;) {
    CHECK(number_from(net.ranks[2]->receive(Rank{0}, tags[i])) == static_cast<int>(i));
  }
  CHECK(number_from(net.ranks[2]->receive(Rank{1}, base)) == 100);
}

void driver_is_a_peer(const MakeEndpoints& make) {
  const Endpoints net = make(1);
  CHECK(net.driver->self() == kDriver);
  CHECK(net.ranks[0]->self() == Rank{0});
  net.driver->send(Rank{0}, on_edge(0), number(1));
  CHECK(number_from(net.ranks[0]->receive(kDriver, on_edge(0))) == 1);
  net.ranks[0]->send(kDriver, on_edge(1), number(2));
  CHECK(number_from(net.driver->receive(Rank{0}, on_edge(1))) == 2);
}

void arrives_as_sent(const MakeEndpoints& make) {
  const Endpoints net = make(2);
  const std::vector<at::Tensor> all{
      at::ones({}, at::kFloat),
      at::empty({0, 4}, at::kFloat),
      at::ones({3}, at::kBool),
      at::arange(12, at::kLong).view({3, 4}),
      at::arange(12, at::kDouble).view({3, 4}).t(),
      at::arange(64, at::kFloat).view({8, 8}).slice(1, 2, 5),
      at::arange(5, at::kBFloat16),
  };
  for (const at::Tensor& sent : all) {
    net.ranks[0]->send(Rank{1}, on_edge(3), sent);
    const Future<at::Tensor> arrival = net.ranks[1]->receive(Rank{0}, on_edge(3));
    REQUIRE(arrival.wait_until(patience()));
    CHECK(arrives_whole(sent, arrival.get()));
  }
}

void sender_may_let_go(const MakeEndpoints& make) {
  Endpoints net = make(2);
  {
    at::Tensor sent = at::arange(1000, at::kFloat);
    net.ranks[0]->send(Rank{1}, on_edge(3), std::move(sent));
  }
  const Future<at::Tensor> arrival = net.ranks[1]->receive(Rank{0}, on_edge(3));
  REQUIRE(arrival.wait_until(patience()));
  const at::Tensor kept = arrival.get();
  net = {};
  CHECK(arrives_whole(at::arange(1000, at::kFloat), kept));
}

void one_tensor_one_receive(const MakeEndpoints& make) {
  const Endpoints net = make(2);
  const Future<at::Tensor> first = net.ranks[1]->receive(Rank{0}, on_edge(3));
  const Future<at::Tensor> second = net.ranks[1]->receive(Rank{0}, on_edge(3));
  std::atomic<int> completions = 0;
  for (const Future<at::Tensor>& arrival : {first, second}) {
    arrival.on_ready([&completions] { ++completions; });
  }
  net.ranks[0]->send(Rank{1}, on_edge(3), number(1));
  CHECK(number_from(first) == 1);
  CHECK_FALSE(second.ready());
  net.ranks[1]->close(kClosed);
  CHECK(failure_of(second) == Errc::TransportClosed);
  CHECK(number_from(first) == 1);
  CHECK(eventually([&] { return completions == 2; }));
}

void close_fails_everything(const MakeEndpoints& make) {
  const Endpoints net = make(2);
  Transport& closing = *net.ranks[1];
  std::vector<Future<at::Tensor>> pending;
  for (int edge = 0; edge < 5; ++edge) {
    pending.push_back(closing.receive(Rank{0}, on_edge(edge)));
    pending.push_back(closing.receive(kDriver, on_edge(edge)));
  }
  net.ranks[0]->send(Rank{1}, on_edge(9), number(1));
  REQUIRE(eventually([&] { return closing.bytes_waiting() == 8; }));
  closing.close(kClosed);
  closing.close(Error(Errc::Internal, "a second close changes nothing"));
  for (const Future<at::Tensor>& receive : pending) {
    CHECK(failure_of(receive) == Errc::TransportClosed);
  }
  CHECK(closing.bytes_waiting() == 0);
  CHECK(failure_of(closing.receive(Rank{0}, on_edge(9))) == Errc::TransportClosed);
  CHECK(thrown_by([&] { closing.send(Rank{0}, on_edge(1), number(1)); }) == Errc::TransportClosed);
  CHECK(cause_of(pending.front()) == kClosed.code());
}

void sending_to_a_closed_peer(const MakeEndpoints& make) {
  const Endpoints net = make(2);
  net.ranks[1]->close(kClosed);
  CHECK_FALSE(thrown_by([&] { net.ranks[0]->send(Rank{1}, on_edge(3), number(1)); }));
  CHECK(net.ranks[1]->bytes_waiting() == 0);
  net.ranks[0]->send(kDriver, on_edge(3), number(2));
  CHECK(number_from(net.driver->receive(Rank{0}, on_edge(3))) == 2);
}

void advance_ends_older_epochs(const MakeEndpoints& make) {
  const Endpoints net = make(2);
  Transport& aborting = *net.ranks[1];
  const Future<at::Tensor> old_receive = aborting.receive(Rank{0}, on_edge(1, 0, 4));
  const Future<at::Tensor> new_receive = aborting.receive(Rank{0}, on_edge(1, 0, 5));
  net.ranks[0]->send(Rank{1}, on_edge(2, 0, 4), number(40));
  net.ranks[0]->send(Rank{1}, on_edge(2, 0, 5), number(50));
  REQUIRE(eventually([&] { return aborting.bytes_waiting() == 16; }));

  aborting.advance(PlanId{}, Epoch{5}, kClosed);
  CHECK(failure_of(old_receive) == Errc::WorkerAborted);
  CHECK(cause_of(old_receive) == kClosed.code());
  CHECK_FALSE(new_receive.ready());
  CHECK(aborting.bytes_waiting() == 8);
  CHECK(aborting.refused() == 0);
  CHECK(failure_of(aborting.receive(Rank{0}, on_edge(2, 0, 4))) == Errc::WorkerAborted);

  net.ranks[0]->send(Rank{1}, on_edge(3, 0, 4), number(41));
  CHECK(eventually([&] { return aborting.refused() == 1; }));
  CHECK(aborting.bytes_waiting() == 8);
  net.ranks[0]->send(Rank{1}, on_edge(1, 0, 5), number(51));
  CHECK(number_from(new_receive) == 51);
  CHECK(number_from(aborting.receive(Rank{0}, on_edge(2, 0, 5))) == 50);
}

void advance_never_goes_back(const MakeEndpoints& make) {
  const Endpoints net = make(2);
  Transport& aborting = *net.ranks[1];
  aborting.advance(PlanId{}, Epoch{5}, kClosed);
  const Future<at::Tensor> pending = aborting.receive(Rank{0}, on_edge(1, 0, 5));
  aborting.advance(PlanId{}, Epoch{5}, Error(Errc::WorkerLost, "the same epoch again"));
  aborting.advance(PlanId{}, Epoch{3}, Error(Errc::WorkerLost, "an epoch before"));
  CHECK_FALSE(pending.ready());
  const Future<at::Tensor> over = aborting.receive(Rank{0}, on_edge(1, 0, 4));
  CHECK(failure_of(over) == Errc::WorkerAborted);
  CHECK(cause_of(over) == kClosed.code());
  net.ranks[0]->send(Rank{1}, on_edge(1, 0, 5), number(5));
  CHECK(number_from(pending) == 5);
}

void plans_abort_each_for_itself(const MakeEndpoints& make) {
  const Endpoints net = make(2);
  Transport& shared = *net.ranks[1];
  const PlanId other{1};
  const auto of_other = [other](int edge) {
    Tag named = on_edge(edge);
    named.plan = other;
    return named;
  };
  const Future<at::Tensor> mine = shared.receive(Rank{0}, on_edge(1));
  const Future<at::Tensor> theirs = shared.receive(Rank{0}, of_other(1));
  net.ranks[0]->send(Rank{1}, of_other(2), number(2));
  REQUIRE(eventually([&] { return shared.bytes_waiting() == 8; }));

  shared.advance(PlanId{}, Epoch{5}, kClosed);
  CHECK(failure_of(mine) == Errc::WorkerAborted);
  CHECK_FALSE(theirs.ready());
  CHECK(thrown_by([&] { shared.require_current(PlanId{}, Epoch{0}); }) == Errc::WorkerAborted);
  CHECK_FALSE(thrown_by([&] { shared.require_current(other, Epoch{0}); }));
  net.ranks[0]->send(Rank{1}, of_other(1), number(1));
  CHECK(number_from(theirs) == 1);
  CHECK(number_from(shared.receive(Rank{0}, of_other(2))) == 2);

  const Future<at::Tensor> later = shared.receive(Rank{0}, of_other(3));
  shared.advance(other, Epoch{1}, Error(Errc::WorkerLost, "a lower epoch, of the other plan"));
  CHECK(failure_of(later) == Errc::WorkerAborted);
  CHECK(cause_of(later) == Errc::WorkerLost);
}

void an_epoch_that_is_over_can_be_asked_about(const MakeEndpoints& make) {
  const Endpoints net = make(2);
  Transport& end = *net.ranks[1];
  const auto asked = [&](int epoch) {
    return thrown_by([&] { end.require_current(PlanId{}, Epoch{epoch}); });
  };
  CHECK_FALSE(asked(0));
  end.advance(PlanId{}, Epoch{5}, kClosed);
  CHECK(asked(4) == Errc::WorkerAborted);
  CHECK_FALSE(asked(5));
  CHECK_FALSE(thrown_by([&] { end.require_current(PlanId{}, kEndlessEpoch); }));
  end.close(kClosed);
  CHECK(asked(5) == Errc::TransportClosed);
  CHECK(thrown_by([&] { end.require_current(PlanId{}, kEndlessEpoch); }) == Errc::TransportClosed);
  CHECK(asked(4) == Errc::TransportClosed);
  CHECK_FALSE(thrown_by([&] { net.ranks[0]->require_current(PlanId{}, Epoch{0}); }));
}

void callbacks_may_call_the_transport(const MakeEndpoints& make) {
  const Endpoints net = make(2);
  Transport& receiver = *net.ranks[1];
  const Future<at::Tensor> ping = receiver.receive(Rank{0}, on_edge(1));
  ping.on_ready([&] {
    receiver.send(Rank{0}, on_edge(2), number(number_in(ping.get()) + 1));
    static_cast<void>(receiver.bytes_waiting());
  });
  const Future<at::Tensor> ended = receiver.receive(Rank{0}, on_edge(3));
  ended.on_ready([&] { static_cast<void>(receiver.receive(Rank{0}, on_edge(4))); });
  net.ranks[0]->send(Rank{1}, on_edge(1), number(1));
  CHECK(number_from(net.ranks[0]->receive(Rank{1}, on_edge(2))) == 2);
  receiver.close(kClosed);
  CHECK(failure_of(ended) == Errc::TransportClosed);
}

void wrong_use(const MakeEndpoints& make) {
  const Endpoints net = make(2);
  Transport& end = *net.ranks[0];
  CHECK(thrown_by([&] { end.send(Rank{2}, on_edge(1), number(1)); }) == Errc::TransportRefused);
  CHECK(thrown_by([&] { end.send(Rank{-2}, on_edge(1), number(1)); }) == Errc::TransportRefused);
  CHECK(thrown_by([&] { static_cast<void>(end.receive(Rank{2}, on_edge(1))); }) ==
        Errc::TransportRefused);
  CHECK(thrown_by([&] { end.send(Rank{1}, on_edge(1), at::Tensor()); }) == Errc::TransportRefused);
}

}  // namespace

const std::vector<TransportCase>& contract_cases() {
  static const std::vector<TransportCase> cases{
      {"a receive after the arrival is complete at once (T-3)", receive_after_arrival},
      {"a receive before the arrival completes with it (T-3)", receive_before_arrival},
      {"equal sender and tag arrive in order of sending (T-1)", fifo},
      {"different tags and senders do not mix, whatever the order of receives (T-1)",
       tags_do_not_mix},
      {"the driver sends and receives like a rank", driver_is_a_peer},
      {"shape, dtype and values arrive as sent", arrives_as_sent},
      {"sender and transport may go, the received tensor stays (T-2)", sender_may_let_go},
      {"one tensor completes one receive (T-3)", one_tensor_one_receive},
      {"close fails pending receives and later calls, and says why (T-4)", close_fails_everything},
      {"sending to a closed peer harms neither sender nor others (T-4)", sending_to_a_closed_peer},
      {"advance ends pending receives and tensors of older epochs and refuses late ones (T-5)",
       advance_ends_older_epochs},
      {"an epoch that is not newer changes nothing (T-5)", advance_never_goes_back},
      {"plans that share a rank end their epochs independently (T-5)", plans_abort_each_for_itself},
      {"require_current says without a receive whether an epoch is over (T-4, T-5)",
       an_epoch_that_is_over_can_be_asked_about},
      {"callbacks may call the transport that completes them (T-6)",
       callbacks_may_call_the_transport},
      {"a rank that is no peer and an undefined tensor are refused", wrong_use},
  };
  return cases;
}

}  // namespace stagecraft::conformance
