#include "stagecraft/tests/conformance/transport_conformance.h"

#include <atomic>
#include <cstddef>
#include <optional>
#include <thread>
#include <utility>

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>

#include "stagecraft/tests/futures/waiting.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

const Error kWhy(Errc::WorkerFailed, "a test ended the step");

Tag tag(int edge, int microbatch = 0, int epoch = 0) {
  return {.epoch = Epoch{epoch},
          .submission = Submission{7},
          .edge = EdgeId{edge},
          .microbatch = Microbatch{microbatch}};
}

bool arrives_whole(const at::Tensor& sent, const at::Tensor& arrived) {
  return arrived.scalar_type() == sent.scalar_type() && arrived.sizes() == sent.sizes() &&
         at::equal(arrived, sent);
}

/// The code of what led to a future's failure.
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
  net.ranks[0]->send(Rank{1}, tag(3), number(42));
  REQUIRE(eventually([&] { return net.ranks[1]->bytes_waiting() == 8; }));
  const Future<at::Tensor> arrival = net.ranks[1]->receive(Rank{0}, tag(3));
  CHECK(arrival.ready());
  CHECK(number_from(arrival) == 42);
  CHECK(net.ranks[1]->bytes_waiting() == 0);
}

void receive_before_arrival(const MakeEndpoints& make) {
  const Endpoints net = make(2);
  const Future<at::Tensor> arrival = net.ranks[1]->receive(Rank{0}, tag(3));
  CHECK_FALSE(arrival.ready());
  net.ranks[0]->send(Rank{1}, tag(3), number(42));
  CHECK(number_from(arrival) == 42);
  CHECK(net.ranks[1]->bytes_waiting() == 0);
}

void fifo(const MakeEndpoints& make) {
  const Endpoints net = make(2);
  std::vector<Future<at::Tensor>> arrivals;
  const auto post = [&](int count) {
    for (int i = 0; i < count; ++i) {
      arrivals.push_back(net.ranks[1]->receive(Rank{0}, tag(3)));
    }
  };
  post(3);
  for (int i = 0; i < 9; ++i) {
    net.ranks[0]->send(Rank{1}, tag(3), number(i));
  }
  post(6);
  for (int i = 0; i < 9; ++i) {
    CHECK(number_from(arrivals[static_cast<std::size_t>(i)]) == i);
  }
}

void tags_do_not_mix(const MakeEndpoints& make) {
  const Endpoints net = make(3);
  const Tag base = tag(3);
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
  net.driver->send(Rank{0}, tag(0), number(1));
  CHECK(number_from(net.ranks[0]->receive(kDriver, tag(0))) == 1);
  net.ranks[0]->send(kDriver, tag(1), number(2));
  CHECK(number_from(net.driver->receive(Rank{0}, tag(1))) == 2);
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
    net.ranks[0]->send(Rank{1}, tag(3), sent);
    const Future<at::Tensor> arrival = net.ranks[1]->receive(Rank{0}, tag(3));
    REQUIRE(arrival.wait_until(patience()));
    CHECK(arrives_whole(sent, arrival.get()));
  }
}

void sender_may_let_go(const MakeEndpoints& make) {
  Endpoints net = make(2);
  {
    at::Tensor sent = at::arange(1000, at::kFloat);
    net.ranks[0]->send(Rank{1}, tag(3), std::move(sent));
  }
  const Future<at::Tensor> arrival = net.ranks[1]->receive(Rank{0}, tag(3));
  REQUIRE(arrival.wait_until(patience()));
  const at::Tensor kept = arrival.get();
  net = {};
  CHECK(arrives_whole(at::arange(1000, at::kFloat), kept));
}

void one_tensor_one_receive(const MakeEndpoints& make) {
  const Endpoints net = make(2);
  const Future<at::Tensor> first = net.ranks[1]->receive(Rank{0}, tag(3));
  const Future<at::Tensor> second = net.ranks[1]->receive(Rank{0}, tag(3));
  std::atomic<int> completions = 0;
  for (const Future<at::Tensor>& arrival : {first, second}) {
    arrival.on_ready([&completions] { ++completions; });
  }
  net.ranks[0]->send(Rank{1}, tag(3), number(1));
  CHECK(number_from(first) == 1);
  CHECK_FALSE(second.ready());
  net.ranks[1]->close(kWhy);
  CHECK(failure_of(second) == Errc::TransportClosed);
  CHECK(number_from(first) == 1);
  CHECK(eventually([&] { return completions == 2; }));
}

void close_fails_everything(const MakeEndpoints& make) {
  const Endpoints net = make(2);
  Transport& closing = *net.ranks[1];
  std::vector<Future<at::Tensor>> pending;
  for (int edge = 0; edge < 5; ++edge) {
    pending.push_back(closing.receive(Rank{0}, tag(edge)));
    pending.push_back(closing.receive(kDriver, tag(edge)));
  }
  net.ranks[0]->send(Rank{1}, tag(9), number(1));
  REQUIRE(eventually([&] { return closing.bytes_waiting() == 8; }));
  closing.close(kWhy);
  closing.close(Error(Errc::Internal, "a second close changes nothing"));
  for (const Future<at::Tensor>& receive : pending) {
    CHECK(failure_of(receive) == Errc::TransportClosed);
  }
  CHECK(closing.bytes_waiting() == 0);
  CHECK(failure_of(closing.receive(Rank{0}, tag(9))) == Errc::TransportClosed);
  CHECK(thrown_by([&] { closing.send(Rank{0}, tag(1), number(1)); }) == Errc::TransportClosed);
  CHECK(cause_of(pending.front()) == kWhy.code());
}

void sending_to_a_closed_peer(const MakeEndpoints& make) {
  const Endpoints net = make(2);
  net.ranks[1]->close(kWhy);
  CHECK_FALSE(thrown_by([&] { net.ranks[0]->send(Rank{1}, tag(3), number(1)); }));
  CHECK(net.ranks[1]->bytes_waiting() == 0);
  net.ranks[0]->send(kDriver, tag(3), number(2));
  CHECK(number_from(net.driver->receive(Rank{0}, tag(3))) == 2);
}

void advance_ends_older_epochs(const MakeEndpoints& make) {
  const Endpoints net = make(2);
  Transport& aborting = *net.ranks[1];
  const Future<at::Tensor> old_receive = aborting.receive(Rank{0}, tag(1, 0, 4));
  const Future<at::Tensor> new_receive = aborting.receive(Rank{0}, tag(1, 0, 5));
  net.ranks[0]->send(Rank{1}, tag(2, 0, 4), number(40));
  net.ranks[0]->send(Rank{1}, tag(2, 0, 5), number(50));
  REQUIRE(eventually([&] { return aborting.bytes_waiting() == 16; }));

  aborting.advance(PlanId{}, Epoch{5}, kWhy);
  CHECK(failure_of(old_receive) == Errc::WorkerAborted);
  CHECK(cause_of(old_receive) == kWhy.code());
  CHECK_FALSE(new_receive.ready());
  CHECK(aborting.bytes_waiting() == 8);
  CHECK(aborting.refused() == 0);
  CHECK(failure_of(aborting.receive(Rank{0}, tag(2, 0, 4))) == Errc::WorkerAborted);

  net.ranks[0]->send(Rank{1}, tag(3, 0, 4), number(41));
  CHECK(eventually([&] { return aborting.refused() == 1; }));
  CHECK(aborting.bytes_waiting() == 8);
  net.ranks[0]->send(Rank{1}, tag(1, 0, 5), number(51));
  CHECK(number_from(new_receive) == 51);
  CHECK(number_from(aborting.receive(Rank{0}, tag(2, 0, 5))) == 50);
}

void advance_never_goes_back(const MakeEndpoints& make) {
  const Endpoints net = make(2);
  Transport& aborting = *net.ranks[1];
  aborting.advance(PlanId{}, Epoch{5}, kWhy);
  const Future<at::Tensor> pending = aborting.receive(Rank{0}, tag(1, 0, 5));
  aborting.advance(PlanId{}, Epoch{5}, Error(Errc::WorkerLost, "the same epoch again"));
  aborting.advance(PlanId{}, Epoch{3}, Error(Errc::WorkerLost, "an epoch before"));
  CHECK_FALSE(pending.ready());
  const Future<at::Tensor> over = aborting.receive(Rank{0}, tag(1, 0, 4));
  CHECK(failure_of(over) == Errc::WorkerAborted);
  CHECK(cause_of(over) == kWhy.code());
  net.ranks[0]->send(Rank{1}, tag(1, 0, 5), number(5));
  CHECK(number_from(pending) == 5);
}

void plans_abort_each_for_itself(const MakeEndpoints& make) {
  const Endpoints net = make(2);
  Transport& shared = *net.ranks[1];
  const PlanId other{1};
  const auto of_other = [other](int edge) {
    Tag named = tag(edge);
    named.plan = other;
    return named;
  };
  const Future<at::Tensor> mine = shared.receive(Rank{0}, tag(1));
  const Future<at::Tensor> theirs = shared.receive(Rank{0}, of_other(1));
  net.ranks[0]->send(Rank{1}, of_other(2), number(2));
  REQUIRE(eventually([&] { return shared.bytes_waiting() == 8; }));

  shared.advance(PlanId{}, Epoch{5}, kWhy);
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
  end.advance(PlanId{}, Epoch{5}, kWhy);
  CHECK(asked(4) == Errc::WorkerAborted);
  CHECK_FALSE(asked(5));
  CHECK_FALSE(thrown_by([&] { end.require_current(PlanId{}, kEndlessEpoch); }));
  end.close(kWhy);
  CHECK(asked(5) == Errc::TransportClosed);
  CHECK(thrown_by([&] { end.require_current(PlanId{}, kEndlessEpoch); }) == Errc::TransportClosed);
  CHECK(asked(4) == Errc::TransportClosed);
  CHECK_FALSE(thrown_by([&] { net.ranks[0]->require_current(PlanId{}, Epoch{0}); }));
}

void callbacks_may_call_the_transport(const MakeEndpoints& make) {
  const Endpoints net = make(2);
  Transport& receiver = *net.ranks[1];
  const Future<at::Tensor> ping = receiver.receive(Rank{0}, tag(1));
  ping.on_ready([&] {
    receiver.send(Rank{0}, tag(2), number(number_in(ping.get()) + 1));
    static_cast<void>(receiver.bytes_waiting());
  });
  const Future<at::Tensor> ended = receiver.receive(Rank{0}, tag(3));
  ended.on_ready([&] { static_cast<void>(receiver.receive(Rank{0}, tag(4))); });
  net.ranks[0]->send(Rank{1}, tag(1), number(1));
  CHECK(number_from(net.ranks[0]->receive(Rank{1}, tag(2))) == 2);
  receiver.close(kWhy);
  CHECK(failure_of(ended) == Errc::TransportClosed);
}

void wrong_use(const MakeEndpoints& make) {
  const Endpoints net = make(2);
  Transport& end = *net.ranks[0];
  CHECK(thrown_by([&] { end.send(Rank{2}, tag(1), number(1)); }) == Errc::TransportRefused);
  CHECK(thrown_by([&] { end.send(Rank{-2}, tag(1), number(1)); }) == Errc::TransportRefused);
  CHECK(thrown_by([&] { static_cast<void>(end.receive(Rank{2}, tag(1))); }) ==
        Errc::TransportRefused);
  CHECK(thrown_by([&] { end.send(Rank{1}, tag(1), at::Tensor()); }) == Errc::TransportRefused);
}

/// Every rank sends to every rank, itself included, from two threads; each thread has its own
/// edges.
void many_threads(const MakeEndpoints& make) {
  constexpr int kRanks = 4;
  constexpr int kThreads = 2;
  constexpr int kMicrobatches = 50;
  const Endpoints net = make(kRanks);
  std::atomic<int> right = 0;
  const auto value = [](int from, int to, int edge, int microbatch) {
    return ((from * kRanks + to) * kThreads + edge) * kMicrobatches + microbatch;
  };
  const auto talk = [&](int self, int edge) {
    const auto at = static_cast<std::size_t>(self);
    for (int m = 0; m < kMicrobatches; ++m) {
      for (int to = 0; to < kRanks; ++to) {
        net.ranks[at]->send(Rank{to}, tag(edge, m % 5), number(value(self, to, edge, m)));
      }
      for (int from = 0; from < kRanks; ++from) {
        const auto arrived = number_from(net.ranks[at]->receive(Rank{from}, tag(edge, m % 5)));
        right += arrived == value(from, self, edge, m) ? 1 : 0;
      }
    }
  };
  std::vector<std::jthread> threads;
  for (int self = 0; self < kRanks; ++self) {
    for (int edge = 0; edge < kThreads; ++edge) {
      threads.emplace_back(talk, self, edge);
    }
  }
  threads.clear();
  CHECK(right == kRanks * kRanks * kThreads * kMicrobatches);
  for (const auto& rank : net.ranks) {
    CHECK(rank->bytes_waiting() == 0);
    CHECK(rank->refused() == 0);
  }
}

/// One thread sends, one receives, one aborts, again and again: each receive ends once, one way or
/// the other.
void abort_while_busy(const MakeEndpoints& make) {
  constexpr int kEpochs = 40;
  constexpr int kPerEpoch = 20;
  const Endpoints net = make(2);
  std::atomic<int> completions = 0;
  std::atomic<int> wrong = 0;
  std::jthread sender([&] {
    for (int i = 0; i < kEpochs * kPerEpoch; ++i) {
      net.ranks[0]->send(Rank{1}, tag(1, 0, i / kPerEpoch), number(i));
    }
  });
  std::jthread aborter([&] {
    for (int epoch = 1; epoch <= kEpochs; ++epoch) {
      net.ranks[1]->advance(PlanId{}, Epoch{epoch}, kWhy);
      std::this_thread::yield();
    }
  });
  for (int i = 0; i < kEpochs * kPerEpoch; ++i) {
    const Future<at::Tensor> arrival = net.ranks[1]->receive(Rank{0}, tag(1, 0, i / kPerEpoch));
    arrival.on_ready([&completions] { ++completions; });
    const std::optional<Errc> failure = failure_of(arrival);
    wrong += !arrival.ready() || (failure && failure != Errc::WorkerAborted) ? 1 : 0;
  }
  sender.join();
  aborter.join();
  CHECK(wrong == 0);
  CHECK(eventually([&] { return completions == kEpochs * kPerEpoch; }));
  CHECK(eventually([&] { return net.ranks[1]->bytes_waiting() == 0; }));
}

void close_while_busy(const MakeEndpoints& make) {
  const Endpoints net = make(2);
  std::atomic<bool> started = false;
  std::jthread closer([&] {
    started.wait(false);
    net.ranks[1]->close(kWhy);
  });
  std::vector<Future<at::Tensor>> receives;
  for (int i = 0; i < 500; ++i) {
    receives.push_back(net.ranks[1]->receive(Rank{0}, tag(1, i)));
    if (i == 100) {
      started = true;
      started.notify_one();
    }
  }
  closer.join();
  for (const Future<at::Tensor>& receive : receives) {
    CHECK(failure_of(receive) == Errc::TransportClosed);
  }
}

}  // namespace

const std::vector<TransportCase>& transport_cases() {
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
      {"plans that share a rank end their epochs each for itself (T-5)",
       plans_abort_each_for_itself},
      {"whether an epoch is over can be asked without a receive (T-4, T-5)",
       an_epoch_that_is_over_can_be_asked_about},
      {"callbacks may call the transport that completes them (T-6)",
       callbacks_may_call_the_transport},
      {"a rank that is no peer and an undefined tensor are refused", wrong_use},
      {"many threads at once get each its own tensor (T-1, T-3)", many_threads},
      {"every receive completes once while epochs end (T-3, T-5)", abort_while_busy},
      {"every receive completes once while the end closes (T-3, T-4)", close_while_busy},
  };
  return cases;
}

}  // namespace stagecraft
