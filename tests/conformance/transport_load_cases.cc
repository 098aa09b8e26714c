#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <thread>
#include <vector>

#include <ATen/ops/equal.h>

#include "stagecraft/tests/conformance/transport_cases.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft::conformance {
namespace {

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

const std::vector<TransportCase>& load_cases() {
  static const std::vector<TransportCase> cases{
      {"many threads each receive their own tensors (T-1, T-3)",
       many_threads,
       /*has_threads=*/true},
      {"every receive completes once while epochs end (T-3, T-5)",
       abort_while_busy,
       /*has_threads=*/true},
      {"every receive completes once while the end closes (T-3, T-4)",
       close_while_busy,
       /*has_threads=*/true},
      {"small and large tensors that take turns keep the order of each tag (T-1)",
       interleaved_tags},
      {"thousands of tensors may be under way (T-3)", many_in_flight},
      {"a receive whose future nobody keeps takes its tensor (T-3)", a_future_that_nobody_keeps},
      {"transfers that a close or the end of an epoch interrupts leave nothing (T-4, T-5)",
       ended_half_way},
      {"a receiver that does not read delays neither sender nor others",
       a_receiver_that_does_not_read},
      {"no part of a tensor arrives whose sender ended half-way; its successor's tensors do (T-1)",
       a_sender_that_ends_half_way},
      {"tensors reach the successor of a receiver that ended half-way",
       a_receiver_that_ends_half_way},
      {"epochs end while several ranks send large and small tensors (T-3, T-5)",
       epochs_end_under_load,
       /*has_threads=*/true},
  };
  return cases;
}

}  // namespace stagecraft::conformance
