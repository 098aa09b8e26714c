#include "stagecraft/tests/conformance/transport_conformance.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <optional>
#include <thread>
#include <utility>

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/imag.h>
#include <ATen/ops/ones.h>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft {
namespace {

const Error kClosed(Errc::WorkerFailed, "a test ended the step");

Tag on_edge(int edge, int microbatch = 0, int epoch = 0) {
  return {.epoch = Epoch{epoch},
          .submission = Submission{7},
          .edge = EdgeId{edge},
          .microbatch = Microbatch{microbatch}};
}

bool arrives_whole(const at::Tensor& sent, const at::Tensor& arrived) {
  return arrived.scalar_type() == sent.scalar_type() && arrived.sizes() == sent.sizes() &&
         at::equal(arrived, sent);
}

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

/// Sends from every rank to every rank, itself included, from two threads; each thread has its own
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
        net.ranks[at]->send(Rank{to}, on_edge(edge, m % 5), number(value(self, to, edge, m)));
      }
      for (int from = 0; from < kRanks; ++from) {
        const auto arrived = number_from(net.ranks[at]->receive(Rank{from}, on_edge(edge, m % 5)));
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

/// Sends, receives and aborts on one thread each, again and again: each receive ends exactly once,
/// with a value or an error.
void abort_while_busy(const MakeEndpoints& make) {
  constexpr int kEpochs = 40;
  constexpr int kPerEpoch = 20;
  const Endpoints net = make(2);
  std::atomic<int> completions = 0;
  std::atomic<int> wrong = 0;
  std::jthread sender([&] {
    for (int i = 0; i < kEpochs * kPerEpoch; ++i) {
      net.ranks[0]->send(Rank{1}, on_edge(1, 0, i / kPerEpoch), number(i));
    }
  });
  std::jthread aborter([&] {
    for (int epoch = 1; epoch <= kEpochs; ++epoch) {
      net.ranks[1]->advance(PlanId{}, Epoch{epoch}, kClosed);
      std::this_thread::yield();
    }
  });
  for (int i = 0; i < kEpochs * kPerEpoch; ++i) {
    const Future<at::Tensor> arrival = net.ranks[1]->receive(Rank{0}, on_edge(1, 0, i / kPerEpoch));
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
    net.ranks[1]->close(kClosed);
  });
  std::vector<Future<at::Tensor>> receives;
  for (int i = 0; i < 500; ++i) {
    receives.push_back(net.ranks[1]->receive(Rank{0}, on_edge(1, i)));
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

/// Returns values that differ from byte to byte, and from those of another `first`.
at::Tensor bytes_from(std::int64_t count, std::int64_t first = 0) {
  const at::Tensor numbers =
      at::arange(first, first + (count + 7) / 8, at::kLong).mul(0x9E3779B97F4A7C1);
  return numbers.view(at::kByte).slice(0, 0, count);
}

/// Sends the tensor, with its receive posted before or after, and checks that it arrives.
bool passes(const Endpoints& net, const at::Tensor& sent, bool posted_first) {
  Future<at::Tensor> arrival;
  if (posted_first) {
    arrival = net.ranks[1]->receive(Rank{0}, on_edge(3));
  }
  net.ranks[0]->send(Rank{1}, on_edge(3), sent);
  if (!posted_first) {
    arrival = net.ranks[1]->receive(Rank{0}, on_edge(3));
  }
  return arrival.wait_until(patience()) && arrives_whole(sent, arrival.get());
}

void every_dtype(const MakeEndpoints& make) {
  const Endpoints net = make(2);
  for (const at::ScalarType dtype : {at::kByte,
                                     at::kChar,
                                     at::kShort,
                                     at::kInt,
                                     at::kLong,
                                     at::kUInt16,
                                     at::kUInt32,
                                     at::kUInt64,
                                     at::kHalf,
                                     at::kBFloat16,
                                     at::kFloat,
                                     at::kDouble,
                                     at::kComplexHalf,
                                     at::kComplexFloat,
                                     at::kComplexDouble,
                                     at::kFloat8_e5m2,
                                     at::kFloat8_e4m3fn,
                                     at::kFloat8_e5m2fnuz,
                                     at::kFloat8_e4m3fnuz,
                                     at::kFloat8_e8m0fnu}) {
    INFO(c10::toString(dtype));
    const at::Tensor sent = at::arange(96, at::kByte).view(dtype);
    net.ranks[0]->send(Rank{1}, on_edge(3), sent);
    const Future<at::Tensor> arrival = net.ranks[1]->receive(Rank{0}, on_edge(3));
    REQUIRE(arrival.wait_until(patience()));
    CHECK(arrival.get().scalar_type() == dtype);
    CHECK(at::equal(arrival.get().view(at::kByte), sent.view(at::kByte)));
  }
  CHECK(passes(net, at::arange(7, at::kLong).gt(2), false));
}

void every_stride(const MakeEndpoints& make) {
  const Endpoints net = make(2);
  const at::Tensor image = at::arange(2 * 3 * 4 * 5, at::kFloat).view({2, 3, 4, 5});
  const at::Tensor complex = bytes_from(64).bitwise_and(63).view(at::kComplexFloat);
  for (const at::Tensor& sent : {image.transpose(1, 3),
                                 image.slice(2, 1, 4, 2),
                                 image.slice(0, 0, 0),
                                 image.select(3, 2),
                                 image.contiguous(at::MemoryFormat::ChannelsLast),
                                 at::ones({3, 1}).expand({3, 70000}),
                                 at::arange(1 << 20, at::kLong).view({1 << 10, 1 << 10}).t(),
                                 at::empty({0, 0}),
                                 at::empty({1, 0, 1 << 30}),
                                 at::ones({1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}),
                                 complex.conj(),
                                 at::imag(complex.conj())}) {
    INFO(sent.sizes());
    CHECK(passes(net, sent, true));
  }
}

void every_size(const MakeEndpoints& make) {
  const Endpoints net = make(2);
  constexpr std::int64_t kKi = 1024;
  for (const std::int64_t size : {1L,
                                  2L,
                                  63L,
                                  64L,
                                  4 * kKi - 1,
                                  4 * kKi + 1,
                                  256 * kKi - 1,
                                  256 * kKi,
                                  256 * kKi + 1,
                                  1024 * kKi,
                                  1024 * kKi + 1,
                                  10000 * kKi + 7}) {
    INFO(size << " bytes");
    CHECK(passes(net, bytes_from(size), true));
    CHECK(passes(net, bytes_from(size, 1), false));
  }
}

void a_quarter_of_a_gibibyte(const MakeEndpoints& make) {
  const Endpoints net = make(2);
  CHECK(passes(net, at::arange(32 << 20, at::kLong), true));
  CHECK(eventually([&] { return net.ranks[1]->bytes_waiting() == 0; }));
}

/// Sends tensors of all sizes under tags that take turns: each tag keeps its own order.
void interleaved_tags(const MakeEndpoints& make) {
  constexpr int kTags = 7;
  constexpr int kPerTag = 40;
  constexpr std::array<std::int64_t, 5> kSizes{1, 300'000, 8, 3'000'000, 0};
  const Endpoints net = make(2);
  const auto sent = [&](int which, int i) {
    const auto size = kSizes[static_cast<std::size_t>(which + i) % kSizes.size()];
    return bytes_from(size, which * kPerTag + i);
  };
  std::vector<Future<at::Tensor>> arrivals(kTags * kPerTag);
  const auto post = [&](int i) {
    for (int which = 0; which < kTags; ++which) {
      arrivals[static_cast<std::size_t>(which * kPerTag + i)] =
          net.ranks[1]->receive(Rank{0}, on_edge(which));
    }
  };
  for (int i = 0; i < kPerTag / 2; ++i) {
    post(i);
  }
  for (int i = 0; i < kPerTag; ++i) {
    for (int which = kTags; which-- > 0;) {
      net.ranks[0]->send(Rank{1}, on_edge(which), sent(which, i));
    }
  }
  for (int i = kPerTag / 2; i < kPerTag; ++i) {
    post(i);
  }
  int right = 0;
  for (int which = 0; which < kTags; ++which) {
    for (int i = 0; i < kPerTag; ++i) {
      const auto& arrival = arrivals[static_cast<std::size_t>(which * kPerTag + i)];
      REQUIRE(arrival.wait_until(patience()));
      right += arrives_whole(sent(which, i), arrival.get()) ? 1 : 0;
    }
  }
  CHECK(right == kTags * kPerTag);
}

void many_in_flight(const MakeEndpoints& make) {
  constexpr int kMany = 3000;
  const Endpoints net = make(3);
  for (int i = 0; i < kMany; ++i) {
    net.ranks[0]->send(Rank{1 + i % 2}, on_edge(i), number(i));
  }
  int right = 0;
  for (int i = kMany; i-- > 0;) {
    right += number_from(
                 net.ranks[static_cast<std::size_t>(1 + i % 2)]->receive(Rank{0}, on_edge(i))) == i
                 ? 1
                 : 0;
  }
  CHECK(right == kMany);
}

void a_future_that_nobody_keeps(const MakeEndpoints& make) {
  const Endpoints net = make(2);
  static_cast<void>(net.ranks[1]->receive(Rank{0}, on_edge(3)));
  net.ranks[0]->send(Rank{1}, on_edge(3), number(1));
  net.ranks[0]->send(Rank{1}, on_edge(3), number(2));
  CHECK(number_from(net.ranks[1]->receive(Rank{0}, on_edge(3))) == 2);
  CHECK(net.ranks[1]->bytes_waiting() == 0);
}

/// Transfers under way when an end closes, or an epoch ends, harm no other transfer and leave
/// nothing behind.
void ended_half_way(const MakeEndpoints& make) {
  constexpr int kLarge = 4;
  const Endpoints net = make(3);
  const auto send_large = [&](int epoch) {
    for (int i = 0; i < kLarge; ++i) {
      net.ranks[0]->send(Rank{1}, on_edge(i, 0, epoch), bytes_from(5'000'000));
    }
  };
  send_large(0);
  const Future<at::Tensor> pending = net.ranks[1]->receive(Rank{0}, on_edge(99));
  net.ranks[1]->advance(PlanId{}, Epoch{1}, kClosed);
  CHECK(failure_of(pending) == Errc::WorkerAborted);
  CHECK(net.ranks[1]->bytes_waiting() == 0);
  send_large(1);
  net.ranks[0]->send(Rank{1}, on_edge(9, 0, 1), number(9));
  CHECK(number_from(net.ranks[1]->receive(Rank{0}, on_edge(9, 0, 1))) == 9);
  net.ranks[1]->close(kClosed);
  CHECK(net.ranks[1]->bytes_waiting() == 0);
  send_large(2);
  net.ranks[0]->send(Rank{2}, on_edge(9), number(10));
  CHECK(number_from(net.ranks[2]->receive(Rank{0}, on_edge(9))) == 10);
  CHECK(eventually([&] { return net.ranks[1]->refused() >= kLarge; }));
  CHECK(net.ranks[1]->bytes_waiting() == 0);
}

void a_receiver_that_does_not_read(const MakeEndpoints& make) {
  constexpr int kMany = 64;
  const Endpoints net = make(3);
  for (int i = 0; i < kMany; ++i) {
    net.ranks[0]->send(Rank{1}, on_edge(3), bytes_from(1 << 20, i));
    net.ranks[0]->send(Rank{2}, on_edge(3), number(i));
  }
  for (int i = 0; i < kMany; ++i) {
    CHECK(number_from(net.ranks[2]->receive(Rank{0}, on_edge(3))) == i);
  }
  int right = 0;
  for (int i = 0; i < kMany; ++i) {
    const Future<at::Tensor> arrival = net.ranks[1]->receive(Rank{0}, on_edge(3));
    REQUIRE(arrival.wait_until(patience()));
    right += at::equal(arrival.get(), bytes_from(1 << 20, i)) ? 1 : 0;
  }
  CHECK(right == kMany);
}

/// Checks that the whole tensor had left before its sender ended, or that no part of it is ever
/// seen.
void ends_half_way(const MakeEndpoints& make, std::int64_t after) {
  const Endpoints net = make(2);
  if (!net.replace) {
    SUCCEED("ranks of one process end together");
    return;
  }
  const at::Tensor lost = bytes_from(40'000'000);
  const at::Tensor later = bytes_from(3'000'000, 5);
  const Future<at::Tensor> first = net.ranks[0]->receive(Rank{1}, on_edge(3));
  net.ranks[1]->send(Rank{0}, on_edge(3), lost);
  const auto successor = net.replace(Rank{1}, after);
  successor->send(Rank{0}, on_edge(3), later);
  successor->send(Rank{0}, on_edge(3), number(8));
  REQUIRE(first.wait_until(patience()));
  const bool was_whole = arrives_whole(lost, first.get());
  const Future<at::Tensor> second = was_whole ? net.ranks[0]->receive(Rank{1}, on_edge(3)) : first;
  REQUIRE(second.wait_until(patience()));
  CHECK(arrives_whole(later, second.get()));
  CHECK(number_from(net.ranks[0]->receive(Rank{1}, on_edge(3))) == 8);
  CHECK(net.ranks[0]->bytes_waiting() == 0);
}

void a_sender_that_ends_half_way(const MakeEndpoints& make) {
  for (const std::int64_t after : {0, 1, 20'000'000}) {
    INFO("after " << after << " bytes");
    ends_half_way(make, after);
  }
}

void a_receiver_that_ends_half_way(const MakeEndpoints& make) {
  const Endpoints net = make(2);
  if (!net.replace) {
    SUCCEED("ranks of one process end together");
    return;
  }
  for (int i = 0; i < 3; ++i) {
    net.ranks[0]->send(Rank{1}, on_edge(3), bytes_from(20'000'000));
  }
  const auto successor = net.replace(Rank{1}, 0);
  net.ranks[0]->send(Rank{1}, on_edge(3), number(7));
  CHECK(number_from(successor->receive(Rank{0}, on_edge(3))) == 7);
  successor->send(Rank{0}, on_edge(4), number(8));
  CHECK(number_from(net.ranks[0]->receive(Rank{1}, on_edge(4))) == 8);
}

/// Sends small and large tensors of an epoch from several ranks until it ends, and continues in the
/// next.
void epochs_end_under_load(const MakeEndpoints& make) {
  constexpr int kSenders = 3;
  constexpr int kEpochs = 12;
  constexpr int kPerEpoch = 8;
  const Endpoints net = make(kSenders + 1);
  Transport& receiver = *net.ranks[kSenders];
  std::atomic<int> wrong = 0;
  std::atomic<int> ended = 0;
  const auto sent = [](int from, int epoch, int i) {
    return bytes_from(i % 4 == 0 ? 700'000 : 40, (epoch * kSenders + from) * kPerEpoch + i);
  };
  const auto talk = [&](int from) {
    for (int epoch = 0; epoch < kEpochs; ++epoch) {
      for (int i = 0; i < kPerEpoch; ++i) {
        net.ranks[static_cast<std::size_t>(from)]->send(
            Rank{kSenders}, on_edge(i % 2, 0, epoch), sent(from, epoch, i));
      }
    }
  };
  const auto listen = [&](int from) {
    for (int epoch = 0; epoch < kEpochs; ++epoch) {
      for (int i = 0; i < kPerEpoch; ++i) {
        const auto arrival = receiver.receive(Rank{from}, on_edge(i % 2, 0, epoch));
        const std::optional<Errc> failure = failure_of(arrival);
        if (failure) {
          wrong += failure == Errc::WorkerAborted && epoch + 1 < kEpochs ? 0 : 1;
        } else {
          wrong += arrival.ready() && at::equal(arrival.get(), sent(from, epoch, i)) ? 0 : 1;
        }
        ++ended;
      }
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int from = 0; from < kSenders; ++from) {
      threads.emplace_back(listen, from);
      threads.emplace_back(talk, from);
    }
    // The epoch ends when about half of its tensors have arrived.
    for (int epoch = 1; epoch < kEpochs; ++epoch) {
      CHECK(eventually([&] { return ended >= (epoch * kPerEpoch - kPerEpoch / 2) * kSenders; }));
      receiver.advance(PlanId{}, Epoch{epoch}, kClosed);
    }
  }
  CHECK(wrong == 0);
  CHECK(ended == kSenders * kEpochs * kPerEpoch);
  CHECK(eventually([&] { return receiver.bytes_waiting() == 0; }));
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
      {"every type arrives as sent", every_dtype},
      {"tensors that are not contiguous, or have no elements, arrive as sent", every_stride},
      {"tensors of 1 byte to 10 MiB arrive whole, asked for before or after (T-3)", every_size},
      {"a tensor of 256 MiB arrives whole", a_quarter_of_a_gibibyte},
      {"tags of small and large tensors that take turns keep each its order (T-1)",
       interleaved_tags},
      {"thousands may be under way (T-3)", many_in_flight},
      {"a receive whose future nobody keeps takes its tensor (T-3)", a_future_that_nobody_keeps},
      {"what is under way when an end closes or an epoch ends leaves nothing (T-4, T-5)",
       ended_half_way},
      {"a receiver that does not read holds up neither sender nor others",
       a_receiver_that_does_not_read},
      {"nothing is seen of a tensor whose sender ended half-way, all of its successor's (T-1)",
       a_sender_that_ends_half_way},
      {"a receiver that ended half-way is gone, its successor is reached",
       a_receiver_that_ends_half_way},
      {"epochs end while several ranks send large and small tensors (T-3, T-5)",
       epochs_end_under_load},
  };
  return cases;
}

}  // namespace stagecraft
