/// Tests sums of a group that spans hosts: their bits, and the bytes between hosts.
#include "stagecraft/futures/collective/pending_sum.h"

#include <atomic>
#include <cmath>
#include <string>
#include <utility>

#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/ones.h>

#include "stagecraft/futures/collective/transport_collective.h"
#include "stagecraft/futures/transport/forwarding_transport.h"
#include "stagecraft/futures/transport/inproc.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/faulty_transport.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

/// Counts the bytes that go to other hosts, of `each` ranks.
class Counting final : public ForwardingTransport {
 public:
  Counting(std::shared_ptr<Transport> inner, int each, std::atomic<std::int64_t>& bytes)
      : ForwardingTransport(std::move(inner)), each_(each), bytes_(bytes) {}
  [[nodiscard]] std::string host_of(Rank rank) const override {
    return std::to_string(rank.value / each_);
  }
  void send(Rank to, const Tag& tag, at::Tensor tensor) override {
    bytes_ += host_of(to) == host_of(self()) ? 0 : static_cast<std::int64_t>(tensor.nbytes());
    ForwardingTransport::send(to, tag, std::move(tensor));
  }

 private:
  const int each_;
  std::atomic<std::int64_t>& bytes_;
};

/// The members of one group, `each` on a host.
struct Hosts {
  Hosts(int members, int each) : network(members) {
    for (int r = 0; r < members; ++r) {
      group.ranks.emplace_back(r);
      ends.push_back(std::make_unique<TransportCollective>(
          std::make_shared<Counting>(network.endpoint(Rank(r)), each, between)));
    }
  }

  /// Starts the sum on all members.
  std::vector<std::unique_ptr<PendingResult>> start(const std::vector<at::Tensor>& buffers) {
    std::vector<std::unique_ptr<PendingResult>> pending;
    for (std::size_t r = 0; r < ends.size(); ++r) {
      pending.push_back(ends[r]->all_reduce(group, {.epoch = Epoch{0}}, buffers[r]));
    }
    return pending;
  }

  InprocNetwork network;
  Group group;
  std::atomic<std::int64_t> between = 0;
  std::vector<std::unique_ptr<TransportCollective>> ends;
};

constexpr std::int64_t kSize = 36 * 16 * 20;

/// Returns values whose sum depends on the order of addition.
std::vector<at::Tensor> uneven(int members) {
  std::vector<at::Tensor> all;
  for (int r = 0; r < members; ++r) {
    all.push_back(at::empty({kSize}, at::kFloat));
    float* const out = all.back().mutable_data_ptr<float>();
    for (std::int64_t i = 0; i < kSize; ++i) {
      const double at = static_cast<double>(i) * (r + 1);
      out[i] = static_cast<float>(std::sin(at) * std::pow(10.0, std::fmod(at, 9)));
    }
  }
  return all;
}

at::Tensor sum_by_rank(const std::vector<at::Tensor>& contributions) {
  at::Tensor sum = contributions.front().clone();
  for (std::size_t r = 1; r < contributions.size(); ++r) {
    sum.add_(contributions[r]);
  }
  return sum;
}

TEST_CASE("a sum over hosts has the bits of one by rank, however many each has (CL-1)",
          "[futures][collective]") {
  for (const auto& [members, each] : {std::pair{6, 1}, {6, 2}, {6, 3}, {6, 4}, {6, 6}, {9, 3}}) {
    CAPTURE(members, each);
    Hosts hosts(members, each);
    const std::vector<at::Tensor> buffers = uneven(members);
    const at::Tensor expected = sum_by_rank(buffers);
    for (const auto& pending : hosts.start(buffers)) {
      CHECK(at::equal(pending->wait(patience()), expected));
    }
  }
}

TEST_CASE("a member that has no room for its sum lacks memory, and no more",
          "[futures][collective]") {
  Hosts hosts(2, 2);
  float one = 1.0F;
  // So large that it cannot be read or made anywhere. It is not read before there is a sum.
  const at::Tensor endless = at::from_blob(&one, {std::int64_t{1} << 50U}, at::kFloat);
  std::vector<std::unique_ptr<PendingResult>> pending;
  for (const auto& end : hosts.ends) {
    pending.push_back(end->reduce_scatter(hosts.group, {.epoch = Epoch{0}}, endless));
  }
  for (const auto& one_sum : pending) {
    try {
      (void)one_sum->wait(patience());
      FAIL("there was room");
    } catch (const Error& error) {
      CHECK(error.code() == Errc::DeviceOutOfMemory);
      CHECK_THAT(error.what(), ContainsSubstring("reduce_scatter 0 of group 0"));
    }
  }
}

TEST_CASE("a member whose sum another one refuses fails as a consequence of that",
          "[futures][collective]") {
  Hosts hosts(3, 3);
  std::vector<Errc> codes;
  // Only the owner of the last part sees that these are not alike.
  for (const auto& pending : hosts.start({at::ones({144}), at::ones({138}), at::ones({144})})) {
    try {
      (void)pending->wait(patience());
      FAIL("there was a sum");
    } catch (const Error& error) {
      codes.push_back(error.code());
      CHECK_THAT(error.what(), ContainsSubstring("rank 0") && ContainsSubstring("rank 1"));
    }
  }
  CHECK((codes == std::vector{Errc::WorkerAborted, Errc::WorkerAborted, Errc::Internal}));
}

TEST_CASE("between hosts a buffer goes once in each direction, not once for each member",
          "[futures][collective]") {
  constexpr std::int64_t kBytes = kSize * 4;
  for (const auto& [members, each, buffers] : {std::tuple{6, 3, 2}, {9, 3, 4}, {4, 2, 2}}) {
    CAPTURE(members, each);
    Hosts hosts(members, each);
    for (const auto& pending : hosts.start(uneven(members))) {
      (void)pending->wait(patience());
    }
    CHECK(hosts.between == buffers * kBytes);
  }
  Hosts alone(2, 1);  // one member a host: half of the buffer there and back, from each
  for (const auto& pending : alone.start(uneven(2))) {
    (void)pending->wait(patience());
  }
  CHECK(alone.between == 2 * kBytes);
}

TEST_CASE("buffers that are not alike fail on all hosts, whichever host has the odd one",
          "[futures][collective]") {
  for (std::size_t odd = 0; odd < 9; ++odd) {
    CAPTURE(odd);
    Hosts hosts(9, 3);
    const auto dtype = odd % 2 == 0 ? at::kFloat : at::kByte;
    std::vector<at::Tensor> buffers = uneven(9);
    buffers[odd] = at::ones({kSize / 2}, dtype);
    for (const auto& pending : hosts.start(buffers)) {
      CHECK_THROWS_WITH(static_cast<void>(pending->wait(patience())),
                        ContainsSubstring("same size and dtype"));
    }
  }
}

TEST_CASE("a member that cannot send ends its operation with the reason, whatever it waits for",
          "[futures][collective]") {
  int failed = 0;
  for (std::int64_t nth = 3; nth <= 8; ++nth) {  // the first two are sent by all_reduce() itself
    CAPTURE(nth);
    constexpr int kMembers = 3;
    InprocNetwork network(kMembers);
    const Group group{.ranks = {Rank(0), Rank(1), Rank(2)}};
    const Error injected(Errc::TransportRefused, "injected");
    std::vector<std::unique_ptr<TransportCollective>> ends;
    std::vector<std::unique_ptr<PendingResult>> pending;
    for (int r = 0; r < kMembers; ++r) {
      const auto end = std::make_shared<FaultyTransport>(network.endpoint(Rank(r)));
      if (r == 1) {
        end->fail_send(nth, injected);
      }
      ends.push_back(std::make_unique<TransportCollective>(end));
    }
    const std::vector<at::Tensor> buffers = uneven(kMembers);
    for (std::size_t r = 0; r < ends.size(); ++r) {
      pending.push_back(ends[r]->all_reduce(group, {.epoch = Epoch{0}}, buffers[r]));
    }
    try {
      (void)pending[1]->wait(patience());
    } catch (const Error& error) {
      ++failed;
      CHECK_THAT(error.what(), ContainsSubstring("injected"));
    }
    for (int r = 0; r < kMembers; ++r) {  // as the driver's abort does
      network.endpoint(Rank(r))->advance(PlanId(), Epoch{1}, injected);
    }
    for (const int other : {0, 2}) {
      try {
        (void)pending[static_cast<std::size_t>(other)]->wait(patience());
      } catch (const Error& error) {
        CHECK_THAT(error.what(), ContainsSubstring("injected"));
      }
    }
  }
  CHECK(failed == 4);  // its sum to two readers, and word to two lenders
}

}  // namespace
}  // namespace stagecraft
