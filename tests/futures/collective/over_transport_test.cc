#include "stagecraft/futures/collective/over_transport.h"

#include <array>
#include <cstddef>
#include <thread>
#include <utility>

#include "stagecraft/futures/transport/faulty.h"
#include "stagecraft/futures/transport/inproc.h"
#include "stagecraft/tests/futures/waiting.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

const Group kThree{.ranks = {Rank{0}, Rank{1}, Rank{2}}, .id = 0};
const Group kOuter{.ranks = {Rank{0}, Rank{2}}, .id = 1};

Sequence sequence(int number, int epoch = 0) {
  return {.epoch = Epoch{epoch}, .submission = Submission{5}, .number = number};
}

std::vector<std::int64_t> numbers_in(const std::vector<at::Tensor>& tensors) {
  std::vector<std::int64_t> numbers;
  for (const at::Tensor& tensor : tensors) {
    numbers.push_back(number_in(tensor));
  }
  return numbers;
}

/// Runs `work(rank, transport)` for three ranks, each on a thread of its own, started in the order
/// given.
template <class Work>
void on_ranks(const std::vector<int>& order, const InprocNetwork& network, Work work) {
  std::vector<std::jthread> threads;
  for (const int rank : order) {
    threads.emplace_back([&network, &work, rank] { work(rank, network.endpoint(Rank{rank})); });
  }
}

TEST_CASE("all_gather returns every contribution by rank, whoever comes first (CL-1)",
          "[futures][collective]") {
  const auto order = GENERATE(std::vector{0, 1, 2}, std::vector{2, 1, 0}, std::vector{1, 2, 0});
  const InprocNetwork network(3);
  std::array<std::vector<std::int64_t>, 3> gathered;
  on_ranks(order, network, [&](int rank, const std::shared_ptr<Transport>& transport) {
    TransportCollective collective(transport);
    gathered[static_cast<std::size_t>(rank)] =
        numbers_in(collective.all_gather(kThree, sequence(0), number(10 + rank), patience()));
  });
  for (const auto& numbers : gathered) {
    CHECK(numbers == std::vector<std::int64_t>{10, 11, 12});
  }
}

TEST_CASE("contributions that arrive in the opposite order are still by rank (CL-1)",
          "[futures][collective]") {
  const InprocNetwork network(3);
  const auto late = std::make_shared<FaultyTransport>(network.endpoint(Rank{0}));
  late->hold_sends();
  std::array<std::vector<std::int64_t>, 3> gathered;
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < 3; ++rank) {
      threads.emplace_back([&, rank] {
        std::shared_ptr<Transport> transport = late;
        if (rank != 0) {
          transport = network.endpoint(Rank{rank});
        }
        TransportCollective collective(transport);
        gathered[static_cast<std::size_t>(rank)] =
            numbers_in(collective.all_gather(kThree, sequence(0), number(rank), patience()));
      });
    }
    CHECK(eventually([&] { return late->sends_held() == 2; }));
    late->release_sends();
  }
  for (const auto& numbers : gathered) {
    CHECK(numbers == std::vector<std::int64_t>{0, 1, 2});
  }
}

TEST_CASE("sequences and groups of one step do not mix, nor with the plan's edges",
          "[futures][collective]") {
  const InprocNetwork network(3);
  std::array<std::vector<std::int64_t>, 3> first;
  std::array<std::vector<std::int64_t>, 3> second;
  std::array<std::vector<std::int64_t>, 3> outer;
  on_ranks({0, 1, 2}, network, [&](int rank, const std::shared_ptr<Transport>& transport) {
    TransportCollective collective(transport);
    const auto at = static_cast<std::size_t>(rank);
    const Tag plan{.epoch = Epoch{0},
                   .submission = Submission{5},
                   .edge = EdgeId{0},
                   .microbatch = Microbatch{0}};
    transport->send(Rank{(rank + 1) % 3}, plan, number(-1));
    first[at] = numbers_in(collective.all_gather(kThree, sequence(0), number(rank), patience()));
    if (rank != 1) {
      outer[at] =
          numbers_in(collective.all_gather(kOuter, sequence(0), number(20 + rank), patience()));
    }
    second[at] =
        numbers_in(collective.all_gather(kThree, sequence(1), number(10 + rank), patience()));
  });
  for (std::size_t at = 0; at < 3; ++at) {
    CHECK(first[at] == std::vector<std::int64_t>{0, 1, 2});
    CHECK(second[at] == std::vector<std::int64_t>{10, 11, 12});
    CHECK(outer[at] == (at == 1 ? std::vector<std::int64_t>{} : std::vector<std::int64_t>{20, 22}));
  }
}

TEST_CASE("what was contributed to another group or sequence is left for it",
          "[futures][collective]") {
  const InprocNetwork network(2);
  const Group group{.ranks = {Rank{0}, Rank{1}}, .id = 0};
  const Group other{.ranks = {Rank{0}, Rank{1}}, .id = 1};
  TransportCollective collective(network.endpoint(Rank{0}));
  const auto contribute = [&network](int edge, int place, std::int64_t value) {
    const Tag tag{.epoch = Epoch{0},
                  .submission = Submission{5},
                  .edge = EdgeId{edge},
                  .microbatch = Microbatch{place}};
    network.endpoint(Rank{1})->send(Rank{0}, tag, number(value));
  };
  contribute(-2, 0, 200);
  contribute(-1, 1, 101);
  contribute(-1, 0, 100);
  const auto arrived = [&](const Group& from, const Sequence& at) {
    return numbers_in(collective.all_gather(from, at, number(0), patience()))[1];
  };
  CHECK(arrived(group, sequence(0)) == 100);
  CHECK(arrived(group, sequence(1)) == 101);
  CHECK(arrived(other, sequence(0)) == 200);
}

TEST_CASE("a group of one gathers its own tensor", "[futures][collective]") {
  const InprocNetwork network(1);
  TransportCollective collective(network.endpoint(Rank{0}));
  const Group alone{.ranks = {Rank{0}}, .id = 0};
  CHECK(numbers_in(collective.all_gather(alone, sequence(0), number(4), already_over())) ==
        std::vector<std::int64_t>{4});
}

TEST_CASE("a member that never calls is named when the deadline is over", "[futures][collective]") {
  const InprocNetwork network(3);
  TransportCollective absent_are_others(network.endpoint(Rank{0}));
  network.endpoint(Rank{1})->send(Rank{0},
                                  {.epoch = Epoch{0},
                                   .submission = Submission{5},
                                   .edge = EdgeId{-1},
                                   .microbatch = Microbatch{0}},
                                  number(1));
  try {
    static_cast<void>(absent_are_others.all_gather(kThree, sequence(0), number(0), already_over()));
    FAIL("rank 2 was not missed");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::ClusterTimeout);
    CHECK_THAT(error.message(), ContainsSubstring("lacked rank 2 at"));
  }
}

TEST_CASE("an abort ends a collective that waits (CL-2)", "[futures][collective]") {
  const InprocNetwork network(3);
  const std::shared_ptr<Transport> transport = network.endpoint(Rank{0});
  std::optional<Errc> ended;
  std::jthread waiting([&] {
    TransportCollective collective(transport);
    ended = thrown_by([&] {
      static_cast<void>(collective.all_gather(kThree, sequence(0), number(0), patience()));
    });
  });
  // Its contribution is out, so the call has begun.
  CHECK(eventually([&] { return network.endpoint(Rank{2})->bytes_waiting() > 0; }));
  SECTION("by its epoch") {
    transport->advance(PlanId{}, Epoch{1}, Error(Errc::WorkerFailed, "another rank failed"));
    waiting.join();
    CHECK(ended == Errc::WorkerAborted);
  }
  SECTION("by close") {
    transport->close(Error(Errc::ClusterClosed, "shutting down"));
    waiting.join();
    CHECK(ended == Errc::TransportClosed);
  }
}

TEST_CASE("a group that is no group, or not the caller's, is refused", "[futures][collective]") {
  const InprocNetwork network(3);
  TransportCollective collective(network.endpoint(Rank{1}));
  const Group group = GENERATE(Group{{}, 0},
                               Group{{Rank{0}, Rank{2}}, 0},
                               Group{{Rank{1}, Rank{0}}, 0},
                               Group{{Rank{1}, Rank{1}}, 0},
                               Group{{Rank{0}, Rank{1}}, -1});
  CHECK(thrown_by([&] {
          static_cast<void>(collective.all_gather(group, sequence(0), number(0), patience()));
        }) == Errc::Internal);
  CHECK(network.endpoint(Rank{0})->bytes_waiting() == 0);
}

}  // namespace
}  // namespace stagecraft
