#include "stagecraft/tests/conformance/collective_conformance.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <optional>
#include <thread>
#include <tuple>
#include <utility>

#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>

#include "stagecraft/base/error.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using Tensors = std::vector<at::Tensor>;
using Order = std::vector<std::size_t>;
using Pending = std::vector<std::unique_ptr<PendingResult>>;
using Operation = std::unique_ptr<PendingResult> (Collective::*)(const Group&,
                                                                 const Sequence&,
                                                                 at::Tensor);

constexpr int kMostRanks = 4;
constexpr std::int64_t kSize = 132;  // divisible by 1, 2, 3 and 4, but not by the width of a vector
const Error kStepEnded(Errc::WorkerFailed, "a test ended the step");

constexpr std::array<Operation, 4> kAll{&Collective::all_reduce,
                                        &Collective::reduce_scatter,
                                        &Collective::all_gather,
                                        &Collective::all_to_all};

Sequence sequence_of(int number, int epoch = 0) {
  return {.epoch = Epoch{epoch}, .submission = Submission{5}, .number = number};
}

Group group_of(const Members& members, std::int32_t id = 0) {
  Group group{.ranks = {}, .id = id};
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    group.ranks.emplace_back(rank);
  }
  return group;
}

std::vector<Order> all_orders(std::size_t ranks) {
  Order order(ranks);
  std::iota(order.begin(), order.end(), 0U);
  std::vector<Order> orders;
  do {
    orders.push_back(order);
  } while (std::ranges::next_permutation(order).found);
  return orders;
}

/// Returns what a member hands over: a copy if the operation works in place.
at::Tensor handed_over(Operation operation, const at::Tensor& contribution) {
  return operation == &Collective::all_reduce ? contribution.clone() : contribution;
}

/// Starts the operation on every member, in the order given.
Pending start(const Members& members,
              Operation operation,
              const Tensors& contributions,
              const Order& order,
              const Sequence& which = sequence_of(0)) {
  Pending pending(members.size());
  for (const std::size_t rank : order) {
    Collective& collective = *members[rank].collective;
    pending[rank] = (collective.*operation)(
        group_of(members), which, handed_over(operation, contributions[rank]));
  }
  return pending;
}

Pending start(const Members& members,
              Operation operation,
              const Tensors& contributions,
              const Sequence& which = sequence_of(0)) {
  return start(members, operation, contributions, all_orders(members.size()).front(), which);
}

Tensors wait(const Pending& pending) {
  Tensors results;
  for (const auto& result : pending) {
    results.push_back(result->wait(patience()));
  }
  return results;
}

/// Returns values of many magnitudes, different for each rank: another order of addition gives
/// other bits.
at::Tensor uneven(std::size_t rank) {
  at::Tensor tensor = at::empty({kSize}, at::kFloat);
  float* const out = tensor.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < kSize; ++i) {
    const auto place = static_cast<double>(i);
    const auto of = static_cast<double>(rank) + 1;
    out[i] = static_cast<float>(std::sin(place * of) * std::pow(10.0, std::fmod(place * of, 9)));
  }
  return tensor;
}

Tensors uneven_of(std::size_t ranks) {
  Tensors contributions;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    contributions.push_back(uneven(rank));
  }
  return contributions;
}

/// Adds the contributions one by one in the order given.
at::Tensor serial_sum(const Tensors& contributions, const Order& order) {
  at::Tensor sum = contributions[order.front()].clone();
  float* const out = sum.mutable_data_ptr<float>();
  for (auto rank = order.begin() + 1; rank != order.end(); ++rank) {
    const float* const in = contributions[*rank].const_data_ptr<float>();
    for (std::int64_t i = 0; i < kSize; ++i) {
      out[i] += in[i];
    }
  }
  return sum;
}

at::Tensor part(const at::Tensor& buffer, std::size_t index, std::size_t of) {
  const std::int64_t size = buffer.numel() / static_cast<std::int64_t>(of);
  return buffer.narrow(0, static_cast<std::int64_t>(index) * size, size);
}

bool same(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && at::equal(a, b);
}

/// Returns what the operation gives each rank, computed by one thread alone.
at::Tensor expected(Operation operation, const Tensors& contributions, std::size_t rank) {
  const std::size_t ranks = contributions.size();
  const at::Tensor sum = serial_sum(contributions, all_orders(ranks).front());
  if (operation == &Collective::all_reduce) {
    return sum;
  }
  if (operation == &Collective::reduce_scatter) {
    return part(sum, rank, ranks);
  }
  if (operation == &Collective::all_gather) {
    return at::cat(contributions);
  }
  Tensors parts;
  for (const at::Tensor& contribution : contributions) {
    parts.push_back(part(contribution, rank, ranks));
  }
  return at::cat(parts);
}

void by_rank_whoever_comes_first(const MakeMembers& make) {
  for (int ranks = 1; ranks <= kMostRanks; ++ranks) {
    const Members members = make(ranks);
    const Tensors contributions = uneven_of(members.size());
    int number = 0;
    for (const Operation operation : kAll) {
      for (const Order& order : all_orders(members.size())) {
        const Tensors results =
            wait(start(members, operation, contributions, order, sequence_of(number++)));
        for (std::size_t rank = 0; rank < members.size(); ++rank) {
          CHECK(same(results[rank], expected(operation, contributions, rank)));
        }
      }
    }
  }
}

void another_order_would_show(const MakeMembers& make) {
  const Members members = make(3);
  const Tensors contributions = uneven_of(3);
  const at::Tensor sum = wait(start(members, &Collective::all_reduce, contributions))[0];
  CHECK(same(sum, serial_sum(contributions, {0, 1, 2})));
  CHECK_FALSE(same(sum, serial_sum(contributions, {2, 1, 0})));
  CHECK_FALSE(same(sum, serial_sum(contributions, {1, 2, 0})));
}

void empty_buffers(const MakeMembers& make) {
  for (int ranks = 1; ranks <= kMostRanks; ++ranks) {
    const Members members = make(ranks);
    const Tensors contributions(members.size(), at::empty({0}, at::kDouble));
    int number = 0;
    for (const Operation operation : kAll) {
      for (const at::Tensor& result :
           wait(start(members, operation, contributions, sequence_of(number++)))) {
        CHECK(same(result, at::empty({0}, at::kDouble)));
      }
    }
  }
}

void keeps_the_dtype(const MakeMembers& make) {
  const Members members = make(2);
  int number = 0;
  for (const at::ScalarType dtype : {at::kDouble, at::kBFloat16, at::kHalf, at::kLong, at::kInt}) {
    const Tensors contributions{at::arange(4, dtype), at::full({4}, 2, dtype)};
    const Tensors sums =
        wait(start(members, &Collective::all_reduce, contributions, sequence_of(number++)));
    CHECK(same(sums[1], at::arange(2, 6, dtype)));
    const Tensors gathered =
        wait(start(members, &Collective::all_gather, contributions, sequence_of(number++)));
    CHECK(same(gathered[0], at::cat(contributions)));
  }
}

void results_are_the_callers_own(const MakeMembers& make) {
  for (int ranks = 1; ranks <= 3; ++ranks) {
    const Members members = make(ranks);
    const Tensors contributions = uneven_of(members.size());
    int number = 0;
    for (const Operation operation : kAll) {
      const Tensors results = wait(start(members, operation, contributions, sequence_of(number++)));
      for (std::size_t rank = 0; rank < members.size(); ++rank) {
        CHECK(same(results[rank], expected(operation, contributions, rank)));
        results[rank].fill_(7);
      }
      for (std::size_t rank = 0; rank < members.size(); ++rank) {
        CHECK(same(contributions[rank], uneven(rank)));
      }
    }
  }
}

/// The first member's contribution is dropped, and its memory used again, before others start.
void contributions_may_be_dropped(const MakeMembers& make) {
  const Members members = make(3);
  const Tensors contributions = uneven_of(members.size());
  int number = 0;
  for (const Operation operation : kAll) {
    if (operation == &Collective::all_reduce) {
      continue;  // it gives the buffer back
    }
    const Sequence which = sequence_of(number++);
    Pending pending;
    for (std::size_t rank = 0; rank < members.size(); ++rank) {
      at::Tensor lendable = members[rank].transport->lendable(kSize, at::kFloat);
      lendable.copy_(contributions[rank]);
      pending.push_back(
          ((*members[rank].collective).*operation)(group_of(members), which, std::move(lendable)));
      members[rank].transport->lendable(kSize, at::kFloat).fill_(7);
    }
    const Tensors results = wait(pending);
    for (std::size_t rank = 0; rank < members.size(); ++rank) {
      CHECK(same(results[rank], expected(operation, contributions, rank)));
    }
  }
}

void works_in_the_buffer(const MakeMembers& make) {
  const Members members = make(3);
  const Tensors buffers = uneven_of(members.size());
  Pending pending;
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    pending.push_back(
        members[rank].collective->all_reduce(group_of(members), sequence_of(0), buffers[rank]));
  }
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    CHECK(pending[rank]->wait(patience()).is_same(buffers[rank]));
    CHECK(same(buffers[rank], serial_sum(uneven_of(3), {0, 1, 2})));
  }
}

void gathers_into_the_buffer(const MakeMembers& make) {
  for (int ranks = 1; ranks <= 3; ++ranks) {
    const Members members = make(ranks);
    const Tensors contributions = uneven_of(members.size());
    const std::int64_t size = contributions.front().numel();
    Tensors buffers, own;
    for (std::size_t rank = 0; rank < members.size(); ++rank) {
      buffers.push_back(at::zeros({size * ranks}, contributions[rank].options()));
      own.push_back(buffers[rank].narrow(0, static_cast<std::int64_t>(rank) * size, size));
      own[rank].copy_(contributions[rank]);
    }
    const Pending pending = start(members, &Collective::all_gather, own, sequence_of(0));
    for (std::size_t rank = members.size(); rank-- > 0;) {
      pending[rank]->wait_into(patience(), buffers[rank]);
      CHECK(same(buffers[rank], at::cat(contributions)));
    }
  }
}

void abandoned_buffers_rest(const MakeMembers& make) {
  const Members members = make(2);
  const at::Tensor buffer = uneven(0);
  const auto given_up =
      members[0].collective->all_reduce(group_of(members), sequence_of(0), buffer);
  given_up->abandon();
  const auto other =
      members[1].collective->all_reduce(group_of(members), sequence_of(0), uneven(1));
  members[0].transport->advance(PlanId{}, Epoch{1}, kStepEnded);
  members[1].transport->advance(PlanId{}, Epoch{1}, kStepEnded);
  CHECK(thrown_by([&] { static_cast<void>(other->wait(patience())); }) == Errc::WorkerAborted);
  CHECK(same(buffer, uneven(0)));
  const Tensors contributions = uneven_of(2);
  for (const at::Tensor& sum :
       wait(start(members, &Collective::all_reduce, contributions, sequence_of(0, 1)))) {
    CHECK(same(sum, expected(&Collective::all_reduce, contributions, 0)));
  }
}

void several_under_way(const MakeMembers& make) {
  const Members members = make(2);
  const Tensors contributions = uneven_of(2);
  std::vector<Pending> under_way;
  for (const Operation operation : kAll) {
    const int number = static_cast<int>(under_way.size());
    under_way.push_back(start(members, operation, contributions, sequence_of(number)));
  }
  const std::array<Order, 2> waits{Order{2, 0, 3, 1}, Order{1, 3, 0, 2}};
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    for (const std::size_t at : waits[rank]) {
      CHECK(same(under_way[at][rank]->wait(patience()), expected(kAll[at], contributions, rank)));
    }
  }
}

void nobody_elses_wait(const MakeMembers& make) {
  const Members members = make(3);
  const Tensors contributions = uneven_of(3);
  int number = 0;
  for (const Operation operation : kAll) {
    Pending pending = start(members, operation, contributions, sequence_of(number++));
    pending[0].reset();
    CHECK(same(pending[1]->wait(patience()), expected(operation, contributions, 1)));
  }
}

void groups_and_sequences_do_not_mix(const MakeMembers& make) {
  const Members members = make(3);
  const Group all = group_of(members);
  const Group outer{.ranks = {Rank{0}, Rank{2}}, .id = 1};
  const auto gather = [&](std::size_t rank, const Group& group, int at, int value) {
    return members[rank].collective->all_gather(group, sequence_of(at), number(value));
  };
  std::array<Pending, 3> of_all;
  Pending of_outer;
  for (const std::size_t rank : {2U, 0U, 1U}) {
    const int value = static_cast<int>(rank);
    if (rank == 2) {
      of_outer.push_back(gather(rank, outer, 0, 20 + value));
    }
    of_all[rank].push_back(gather(rank, all, 0, value));
    of_all[rank].push_back(gather(rank, all, 1, 10 + value));
    if (rank == 0) {
      of_outer.push_back(gather(rank, outer, 0, 20 + value));
    }
  }
  for (const at::Tensor& result : wait(of_outer)) {
    CHECK(same(result, at::cat({number(20), number(22)})));
  }
  for (const Pending& pending : of_all) {
    const Tensors results = wait(pending);
    CHECK(same(results[0], at::cat({number(0), number(1), number(2)})));
    CHECK(same(results[1], at::cat({number(10), number(11), number(12)})));
  }
}

/// Overlapping groups, whose members start them in different orders and wait in others.
void several_groups_under_way(const MakeMembers& make) {
  constexpr std::int64_t kLarge = 100'003;  // parts go into slots, and are not equal
  constexpr int kEach = 3;
  const Members members = make(kMostRanks);
  const std::array<Group, 4> groups{Group{{Rank{0}, Rank{1}, Rank{2}, Rank{3}}, 0},
                                    Group{{Rank{0}, Rank{1}}, 1},
                                    Group{{Rank{1}, Rank{2}, Rank{3}}, 2},
                                    Group{{Rank{0}, Rank{3}}, 3}};
  const auto value = [](std::size_t rank, std::size_t group, int number) {
    return static_cast<double>(static_cast<int>(rank) + 10 * static_cast<int>(group) +
                               100 * number);
  };
  std::atomic<int> right = 0;
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    threads.emplace_back([&, rank] {
      std::vector<std::tuple<std::size_t, int, std::unique_ptr<PendingResult>>> under_way;
      for (std::size_t i = 0; i < groups.size(); ++i) {
        const std::size_t g = (i + rank) % groups.size();
        for (int number = 0; number < kEach; ++number) {
          if (std::ranges::find(groups[g].ranks, Rank{rank}) != groups[g].ranks.end()) {
            at::Tensor buffer = members[rank].transport->lendable(kLarge, at::kFloat);
            buffer.fill_(value(rank, g, number));
            under_way.emplace_back(
                g,
                number,
                members[rank].collective->all_reduce(groups[g], sequence_of(number), buffer));
          }
        }
      }
      std::ranges::rotate(under_way, under_way.begin() + static_cast<std::ptrdiff_t>(rank));
      for (const auto& [g, number, pending] : under_way) {
        double sum = 0.0;
        for (const Rank member : groups[g].ranks) {
          sum += value(member.index(), g, number);
        }
        const at::Tensor got = pending->wait(patience());
        right += same(got, at::full({kLarge}, sum, at::kFloat)) ? 1 : 0;
        got.fill_(-1);  // the caller's own again
      }
    });
  }
  threads.clear();
  CHECK(right == kEach * (4 + 2 + 3 + 2));
}

void unlike_buffers(const MakeMembers& make) {
  const Members members = make(3);
  int number = 0;
  for (const Operation operation : kAll) {
    // Owners of the first two parts see no difference between 138 and 144 elements.
    const bool equal_parts = operation != &Collective::all_reduce;
    for (const at::Tensor& other :
         {at::ones({equal_parts ? 288 : 138}, at::kFloat), at::ones({144}, at::kInt)}) {
      const at::Tensor usual = at::ones({144}, at::kFloat);
      for (const auto& pending :
           start(members, operation, {usual, other, usual}, sequence_of(number++))) {
        CHECK_THROWS_WITH(static_cast<void>(pending->wait(patience())),
                          ContainsSubstring("rank 0") && ContainsSubstring("rank 1") &&
                              !ContainsSubstring("rank 2"));
      }
    }
  }
}

void missing_members_are_named(const MakeMembers& make) {
  const Members members = make(4);
  const Group group = group_of(members);
  int number = 0;
  for (const Operation operation : kAll) {
    const Sequence which = sequence_of(number++);
    const auto begin = [&](std::size_t rank) {
      return ((*members[rank].collective).*operation)(group, which, uneven(rank));
    };
    // A sum that goes from host to host waits for the next ranks on its way.
    const Transport& own = *members[0].transport;
    const bool hears_all =
        operation != &Collective::all_reduce || own.host_of(Rank{2}) == own.host_of(Rank{0});
    const std::string missing = hears_all ? "1, 3" : "1";
    const std::int64_t before = own.bytes_waiting();
    const auto two = begin(2);
    REQUIRE(eventually([&] { return !hears_all || own.bytes_waiting() > before; }));
    const auto zero = begin(0);
    try {
      static_cast<void>(zero->wait(already_over()));
      FAIL("ranks 1 and 3 were not missed");
    } catch (const Error& error) {
      CHECK(error.code() == Errc::ClusterTimeout);
      CHECK_THAT(error.message(),
                 ContainsSubstring("did not hear from rank " + missing + " before"));
      CHECK(error.context().peer == "rank " + missing);
    }
  }
}

void what_is_here_needs_no_time(const MakeMembers& make) {
  const Members alone = make(1);
  const Tensors contribution{uneven(0)};
  int number = 0;
  for (const Operation operation : kAll) {
    const Pending pending = start(alone, operation, contribution, sequence_of(number++));
    CHECK(same(pending[0]->wait(already_over()), contribution[0]));
  }
}

void the_board_shows_the_missing(const MakeMembers& make) {
  const Members members = make(3);
  const Group group = group_of(members);
  const WaitBoard& board = *members[0].board;
  const auto begin = [&](std::size_t rank) {
    return members[rank].collective->all_reduce(group, sequence_of(0), uneven(rank));
  };
  const auto one = begin(1);
  at::Tensor sum;
  std::jthread waiting([&] { sum = begin(0)->wait(patience()); });
  CHECK(eventually([&] { return board.missing() == std::vector{Rank{2}}; }));
  const auto two = begin(2);
  waiting.join();
  CHECK(board.missing().empty());
  CHECK(same(sum, expected(&Collective::all_reduce, uneven_of(3), 0)));
}

/// Uses `end` to end an operation of two in which rank 0 waits for rank 1; returns the error code.
template <class End>
std::optional<Errc> ended_by(const Members& members, const Sequence& which, End end) {
  std::optional<Errc> ended;
  std::jthread waiting([&] {
    const auto pending = members[0].collective->all_reduce(group_of(members), which, uneven(0));
    ended = thrown_by([&] { static_cast<void>(pending->wait(patience())); });
  });
  CHECK(eventually([&] { return !members[0].board->missing().empty(); }));
  end();
  waiting.join();
  return ended;
}

void an_abort_ends_what_waits(const MakeMembers& make) {
  const Members members = make(2);
  const auto abort = [&] {
    for (const Member& member : members) {
      member.transport->advance(PlanId{}, Epoch{1}, kStepEnded);
    }
  };
  CHECK(ended_by(members, sequence_of(0), abort) == Errc::WorkerAborted);
  const Tensors contributions = uneven_of(2);
  for (const at::Tensor& sum :
       wait(start(members, &Collective::all_reduce, contributions, sequence_of(0, 1)))) {
    CHECK(same(sum, expected(&Collective::all_reduce, contributions, 0)));
  }
}

void an_abort_ends_what_is_under_way(const MakeMembers& make) {
  const Members members = make(2);
  int number = 0;
  for (const Operation operation : kAll) {
    const Sequence which = sequence_of(number, number);
    const auto pending = ((*members[0].collective).*operation)(group_of(members), which, uneven(0));
    members[0].transport->advance(PlanId{}, Epoch{++number}, kStepEnded);
    CHECK(thrown_by([&] { static_cast<void>(pending->wait(patience())); }) == Errc::WorkerAborted);
  }
}

void a_close_ends_what_waits(const MakeMembers& make) {
  const Members members = make(2);
  const auto close = [&] { members[0].transport->close(kStepEnded); };
  CHECK(ended_by(members, sequence_of(0), close) == Errc::TransportClosed);
  CHECK(thrown_by([&] {
          const auto started =
              members[0].collective->all_reduce(group_of(members), sequence_of(1), uneven(0));
          static_cast<void>(started->wait(patience()));
        }) == Errc::TransportClosed);
}

void a_result_is_waited_for_once(const MakeMembers& make) {
  const Members members = make(1);
  const Pending pending = start(members, &Collective::all_reduce, {uneven(0)});
  static_cast<void>(pending[0]->wait(patience()));
  CHECK(thrown_by([&] { static_cast<void>(pending[0]->wait(patience())); }) == Errc::Internal);
}

void no_group_of_the_callers(const MakeMembers& make) {
  const Members members = make(3);
  for (const Operation operation : kAll) {
    for (const Group& group : {Group{{}, 0},
                               Group{{Rank{0}, Rank{2}}, 0},
                               Group{{Rank{1}, Rank{0}}, 0},
                               Group{{Rank{1}, Rank{1}}, 0},
                               Group{{Rank{0}, Rank{1}}, -1}}) {
      CHECK(thrown_by([&] {
              static_cast<void>(
                  ((*members[1].collective).*operation)(group, sequence_of(0), uneven(1)));
            }) == Errc::Internal);
    }
  }
  CHECK(members[0].transport->bytes_waiting() == 0);
}

void no_flat_buffer(const MakeMembers& make) {
  const Members members = make(2);
  const auto refused = [&](Operation operation, const at::Tensor& contribution) {
    return thrown_by([&] {
             static_cast<void>(((*members[0].collective).*operation)(
                 group_of(members), sequence_of(0), contribution));
           }) == Errc::Internal;
  };
  for (const Operation operation : kAll) {
    CHECK(refused(operation, at::Tensor()));
    CHECK(refused(operation, at::ones({}, at::kFloat)));
    CHECK(refused(operation, at::ones({2, 2}, at::kFloat)));
    CHECK(refused(operation, at::ones({4, 2}, at::kFloat).select(1, 0)));
  }
  CHECK(refused(&Collective::reduce_scatter, at::ones({3}, at::kFloat)));
  CHECK(refused(&Collective::all_to_all, at::ones({3}, at::kFloat)));
  CHECK(members[1].transport->bytes_waiting() == 0);
}

void many_threads(const MakeMembers& make) {
  constexpr int kRounds = 30;
  const Members members = make(kMostRanks);
  const Group group = group_of(members);
  const Tensors contributions = uneven_of(members.size());
  std::atomic<int> right = 0;
  std::vector<std::jthread> threads;
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    threads.emplace_back([&, rank] {
      for (int round = 0; round < kRounds; ++round) {
        Pending pending;
        for (const Operation operation : kAll) {
          const int place = round * 4 + static_cast<int>(pending.size());
          pending.push_back(((*members[rank].collective).*operation)(
              group, sequence_of(place), handed_over(operation, contributions[rank])));
        }
        for (std::size_t i = kAll.size(); i-- > 0;) {
          const at::Tensor result = pending[i]->wait(patience());
          right += same(result, expected(kAll[i], contributions, rank)) ? 1 : 0;
        }
      }
    });
  }
  threads.clear();
  CHECK(right == kMostRanks * kRounds * static_cast<int>(kAll.size()));
}

/// Lent memory is large enough to be read in place. A member that has waited writes to it at once.
void scattered_buffers_are_free_again(const MakeMembers& make) {
  constexpr int kRounds = 30;
  constexpr std::int64_t kLarge = 4 * 8192;  // elements
  const Members members = make(kMostRanks);
  const Group group = group_of(members);
  std::atomic<int> right = 0;
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < kMostRanks; ++rank) {
    threads.emplace_back([&, rank] {
      const Member& member = members[static_cast<std::size_t>(rank)];
      at::Tensor buffer = member.transport->lendable(kLarge, at::kFloat);
      for (int round = 0; round < kRounds; ++round) {
        buffer.fill_(10 * round + rank);
        const at::Tensor sum =
            member.collective->reduce_scatter(group, sequence_of(round), buffer)->wait(patience());
        buffer.fill_(-1.0);
        right += same(sum, at::full({kLarge / 4}, static_cast<float>(40 * round + 6))) ? 1 : 0;
      }
    });
  }
  threads.clear();
  CHECK(right == kMostRanks * kRounds);
}

}  // namespace

const std::vector<CollectiveCase>& collective_cases() {
  static const std::vector<CollectiveCase> cases{
      {"every operation gives what one thread computes by rank, whoever starts first (CL-1)",
       by_rank_whoever_comes_first},
      {"another order of addition would show in the bits (CL-1)", another_order_would_show},
      {"buffers without elements work", empty_buffers},
      {"the result has the dtype of the contributions", keeps_the_dtype},
      {"contributions do not change, and results are the caller's own (CL-3)",
       results_are_the_callers_own},
      {"a contribution may be dropped when the operation has started (CL-3)",
       contributions_may_be_dropped},
      {"an all_reduce works in the buffer (CL-3)", works_in_the_buffer},
      {"a reduce_scatter's buffer is the caller's again after its wait (CL-3)",
       scattered_buffers_are_free_again},
      {"an all_gather fills the buffer that has the contribution", gathers_into_the_buffer},
      {"an operation that is given up leaves the buffer alone", abandoned_buffers_rest},
      {"several operations are under way and waited for in any order (CL-4)", several_under_way},
      {"a result needs nobody else's wait, and may be dropped (CL-4)", nobody_elses_wait},
      {"groups and sequences of one step do not mix (CL-2)", groups_and_sequences_do_not_mix},
      {"sums of several groups are under way, and started in different orders (CL-4)",
       several_groups_under_way},
      {"buffers of different sizes or dtypes fail on every member, with two ranks named",
       unlike_buffers},
      {"members that never start are named at the deadline", missing_members_are_named},
      {"a result whose parts have arrived needs no time", what_is_here_needs_no_time},
      {"a waiting member shows for whom it waits (WB-1)", the_board_shows_the_missing},
      {"an abort ends a wait, and the next epoch works (CL-2)", an_abort_ends_what_waits},
      {"an abort ends an operation that nobody waits for yet (CL-2)",
       an_abort_ends_what_is_under_way},
      {"a close ends a wait and later operations", a_close_ends_what_waits},
      {"a result is waited for once", a_result_is_waited_for_once},
      {"an invalid group, or one without the caller, is refused before anything is sent",
       no_group_of_the_callers},
      {"a buffer that is not flat, or has no equal parts, is refused before anything is sent",
       no_flat_buffer},
      {"members on threads of their own get the same results (CL-1, CL-4)", many_threads},
  };
  return cases;
}

}  // namespace stagecraft
