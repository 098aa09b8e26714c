#include "stagecraft/futures/collective/transport_collective.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>

#include "stagecraft/futures/transport/inproc.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/faulty_transport.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft {
namespace {

const Group kTwo{.ranks = {Rank{0}, Rank{1}}, .id = 0};

Sequence sequence(int number) {
  return {.epoch = Epoch{0}, .submission = Submission{5}, .number = number};
}

Tag tag(int edge, int place) {
  return {.epoch = Epoch{0},
          .submission = Submission{5},
          .edge = EdgeId{edge},
          .microbatch = Microbatch{place}};
}

TEST_CASE("contributions that arrive in the opposite order are combined by rank (CL-1)",
          "[futures][collective]") {
  const Group group{.ranks = {Rank{0}, Rank{1}, Rank{2}}, .id = 0};
  const InprocNetwork network(3);
  const auto late = std::make_shared<FaultyTransport>(network.endpoint(Rank{0}));
  late->hold_sends();
  TransportCollective zero(late);
  TransportCollective one(network.endpoint(Rank{1}));
  TransportCollective two(network.endpoint(Rank{2}));
  const auto first = zero.all_gather(group, sequence(0), number(10));
  const auto second = one.all_gather(group, sequence(0), number(11));
  const auto third = two.all_gather(group, sequence(0), number(12));
  REQUIRE(late->sends_held() == 2);
  late->release_sends();
  for (PendingResult* pending : {first.get(), second.get(), third.get()}) {
    CHECK(at::equal(pending->wait(patience()), at::cat({number(10), number(11), number(12)})));
  }
}

TEST_CASE("each group has its own edge below 0, so the plan does not mix with it (TG-1)",
          "[futures][collective]") {
  const InprocNetwork network(2);
  const Group other{.ranks = kTwo.ranks, .id = 1};
  TransportCollective collective(network.endpoint(Rank{0}));
  const auto send = [&network](int edge, int place, std::int64_t value) {
    network.endpoint(Rank{1})->send(Rank{0}, tag(edge, place), number(value));
  };
  send(0, 0, -1);  // from the plan
  send(-2, 0, 200);
  send(-1, 1, 101);
  send(-1, 0, 100);
  const auto arrived = [&](const Group& group, int place) {
    const auto pending = collective.all_gather(group, sequence(place), number(0));
    return number_in(pending->wait(patience()).narrow(0, 1, 1));
  };
  CHECK(arrived(kTwo, 0) == 100);
  CHECK(arrived(kTwo, 1) == 101);
  CHECK(arrived(other, 0) == 200);
}

TEST_CASE("a member receives what it needs and no more", "[futures][collective]") {
  const InprocNetwork network(2);
  TransportCollective collective(network.endpoint(Rank{0}));
  const std::shared_ptr<Transport> peer = network.endpoint(Rank{1});
  const at::Tensor buffer = at::ones({96}, at::kFloat);
  const auto whole = collective.all_gather(kTwo, sequence(0), buffer);
  CHECK(peer->bytes_waiting() == 384);
  const auto half = collective.reduce_scatter(kTwo, sequence(1), buffer);
  CHECK(peer->bytes_waiting() == 384 + 192);
}

TEST_CASE("the members of an all_reduce each add a part", "[futures][collective]") {
  constexpr int kMembers = 4;
  const InprocNetwork network(kMembers);
  Group group;
  std::vector<std::unique_ptr<TransportCollective>> ends;
  for (int r = 0; r < kMembers; ++r) {
    group.ranks.emplace_back(r);
    ends.push_back(std::make_unique<TransportCollective>(network.endpoint(Rank(r))));
  }
  // Three start: each has then a quarter of the buffer from both others, and rank 3 from all.
  std::vector<std::unique_ptr<PendingResult>> pending;
  for (int r = 0; r < 3; ++r) {
    pending.push_back(ends[static_cast<std::size_t>(r)]->all_reduce(
        group, sequence(0), at::ones({1024}, at::kFloat)));
  }
  CHECK(network.endpoint(Rank(3))->bytes_waiting() == 3 * 1024);
  pending.push_back(ends[3]->all_reduce(group, sequence(0), at::ones({1024}, at::kFloat)));
  for (const auto& result : pending) {
    CHECK(at::equal(result->wait(patience()), at::full({1024}, 4.0F)));
  }
}

TEST_CASE("a rank gives its contribution away without a copy (CL-3)", "[futures][collective]") {
  const InprocNetwork network(2);
  TransportCollective collective(network.endpoint(Rank{0}));
  const at::Tensor buffer = at::ones({6}, at::kFloat);
  const auto pending = collective.all_gather(kTwo, sequence(0), buffer);
  const Future<at::Tensor> arrival = network.endpoint(Rank{1})->receive(Rank{0}, tag(-1, 0));
  REQUIRE(arrival.ready());
  CHECK(arrival.get().const_data_ptr() == buffer.const_data_ptr());
}

}  // namespace
}  // namespace stagecraft
