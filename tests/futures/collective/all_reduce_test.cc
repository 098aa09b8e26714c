#include "stagecraft/futures/collective/all_reduce.h"

#include <thread>

#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include "stagecraft/base/error.h"
#include "stagecraft/futures/collective/over_transport.h"
#include "stagecraft/futures/transport/inproc.h"
#include "stagecraft/tests/futures/waiting.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

constexpr Sequence kSequence{.epoch = Epoch{0}, .submission = Submission{1}, .number = 0};

/// The result on every rank, with parts[r] contributed by rank r; `first` enters before the others.
std::vector<at::Tensor> reduce(const std::vector<at::Tensor>& parts, std::size_t first = 0) {
  const InprocNetwork network(static_cast<int>(parts.size()));
  Group group;
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    group.ranks.emplace_back(rank);
  }
  std::vector<at::Tensor> results(parts.size());
  std::vector<std::jthread> threads;
  const auto enter = [&](std::size_t rank) {
    threads.emplace_back([&, rank] {
      TransportCollective collective(network.endpoint(Rank{rank}));
      results[rank] = all_reduce(collective, group, kSequence, parts[rank], patience());
    });
  };
  enter(first);
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    if (rank != first) {
      enter(rank);
    }
  }
  threads.clear();
  return results;
}

TEST_CASE("every member gets the sum in ascending order of rank", "[futures][collective]") {
  // In single precision the order shows: (1e8 + 1) - 1e8 is 0, (1e8 - 1e8) + 1 is 1.
  const std::vector<at::Tensor> parts{
      at::full({3}, 1e8F), at::full({3}, 1.0F), at::full({3}, -1e8F)};
  for (std::size_t first = 0; first < parts.size(); ++first) {
    for (const at::Tensor& sum : reduce(parts, first)) {
      CHECK(at::equal(sum, at::zeros({3})));
    }
  }
  CHECK(at::equal(reduce({parts[0], parts[2], parts[1]})[0], at::full({3}, 1.0F)));
}

TEST_CASE("what was contributed is not written", "[futures][collective]") {
  const std::vector<at::Tensor> parts{at::full({2}, 1.0F), at::full({2}, 2.0F)};
  (void)reduce(parts);
  CHECK(at::equal(parts[0], at::full({2}, 1.0F)));
  CHECK(at::equal(parts[1], at::full({2}, 2.0F)));
}

TEST_CASE("members that reduce different shapes are found out", "[futures][collective]") {
  const InprocNetwork network(2);
  const Group group{{Rank(0), Rank(1)}};
  std::jthread other([&] {
    TransportCollective collective(network.endpoint(Rank{1}));
    CHECK_THROWS_AS((void)all_reduce(collective, group, kSequence, at::zeros({3}), patience()),
                    Error);
  });
  TransportCollective collective(network.endpoint(Rank{0}));
  CHECK_THROWS_WITH((void)all_reduce(collective, group, kSequence, at::zeros({2}), patience()),
                    ContainsSubstring("rank 1 reduces a tensor of another shape or type"));
}

}  // namespace
}  // namespace stagecraft
