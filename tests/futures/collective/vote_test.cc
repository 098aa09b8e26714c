#include "stagecraft/futures/collective/vote.h"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <thread>
#include <utility>

#include "stagecraft/futures/collective/over_transport.h"
#include "stagecraft/futures/transport/inproc.h"
#include "stagecraft/tests/futures/waiting.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr Sequence kSequence{.epoch = Epoch{0}, .submission = Submission{1}, .number = 0};

/// Returns what the others contributed to a vote that the caller enters as rank 0.
class Scripted final : public Collective {
 public:
  explicit Scripted(std::vector<at::Tensor> others) : others_(std::move(others)) {}

  std::vector<at::Tensor> all_gather(const Group&,
                                     const Sequence&,
                                     at::Tensor own,
                                     Deadline) override {
    std::vector<at::Tensor> all{std::move(own)};
    all.insert(all.end(), others_.begin(), others_.end());
    return all;
  }

 private:
  std::vector<at::Tensor> others_;
};

/// The result on every rank, with ballots[r] cast by rank r.
std::vector<VoteResult> vote_of(const std::vector<Ballot>& ballots) {
  const InprocNetwork network(static_cast<int>(ballots.size()));
  Group group;
  for (std::size_t rank = 0; rank < ballots.size(); ++rank) {
    group.ranks.emplace_back(rank);
  }
  std::vector<VoteResult> results(ballots.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < ballots.size(); ++rank) {
      threads.emplace_back([&, rank] {
        TransportCollective collective(network.endpoint(Rank{rank}));
        results[rank] = vote(collective, group, kSequence, ballots[rank], patience());
      });
    }
  }
  return results;
}

/// Twelve parameters whose squared norms span many magnitudes, so that another order gives other
/// bits.
double squared_norm(std::int64_t parameter) {
  return std::pow(10.0, static_cast<double>(parameter % 5) * 4 - 8) / 3;
}

TEST_CASE("all ranks learn the same norm, bit-equal for any cut and order of ballots (VO-1)",
          "[futures][vote]") {
  constexpr std::int64_t kParameters = 12;
  double sum = 0.0;
  for (std::int64_t p = 0; p < kParameters; ++p) {
    sum += squared_norm(p);
  }
  const auto expected = std::bit_cast<std::uint64_t>(std::sqrt(sum));

  const int ranks = GENERATE(1, 2, 3, 4);
  const bool interleaved = GENERATE(false, true);
  std::vector<Ballot> ballots(static_cast<std::size_t>(ranks));
  for (std::int64_t p = kParameters - 1; p >= 0; --p) {
    const std::int64_t rank = interleaved ? p % ranks : p * ranks / kParameters;
    ballots[static_cast<std::size_t>(rank)].squared_norms.push_back({p, squared_norm(p)});
  }
  for (const VoteResult& result : vote_of(ballots)) {
    CHECK(result.all_finite);
    CHECK(std::bit_cast<std::uint64_t>(result.total_norm) == expected);
    CHECK_FALSE(result.first_non_finite_parameter);
    CHECK_FALSE(result.first_non_finite_rank);
  }
}

TEST_CASE("a gradient that is not finite is named by model order on every rank",
          "[futures][vote]") {
  const double bad = GENERATE(kInf, kNan);
  const std::vector<Ballot> ballots{
      {.finite = true, .squared_norms = {{4, 1.0}, {5, 1.0}}},
      {.finite = false, .squared_norms = {{3, bad}, {2, 1.0}}},
      {.finite = false, .squared_norms = {{1, bad}, {0, 1.0}}},
  };
  for (const VoteResult& result : vote_of(ballots)) {
    CHECK_FALSE(result.all_finite);
    CHECK(result.first_non_finite_parameter == 1);
    CHECK(result.first_non_finite_rank == Rank{1});
    CHECK_FALSE(std::isfinite(result.total_norm));
  }
}

TEST_CASE("a norm that is not finite counts even when its ballot says finite", "[futures][vote]") {
  const std::vector<VoteResult> results = vote_of({{true, {{0, 1.0}}}, {true, {{1, kNan}}}});
  CHECK_FALSE(results[0].all_finite);
  CHECK(results[0].first_non_finite_parameter == 1);
  CHECK(results[0].first_non_finite_rank == Rank{1});
}

TEST_CASE("a rank without parameters can say that its loss is not finite", "[futures][vote]") {
  for (const VoteResult& result : vote_of({{true, {{0, 9.0}}}, {false, {}}})) {
    CHECK_FALSE(result.all_finite);
    CHECK(result.first_non_finite_rank == Rank{1});
    CHECK_FALSE(result.first_non_finite_parameter);
    CHECK(result.total_norm == 3.0);
  }
}

TEST_CASE("a vote about nothing is finite and zero", "[futures][vote]") {
  const std::vector<VoteResult> results = vote_of({{}, {}});
  CHECK(results[1].all_finite);
  CHECK(results[1].total_norm == 0.0);
}

TEST_CASE("a parameter that two ranks claim is our bug, and named", "[futures][vote]") {
  const at::Tensor other = at::full({3}, 1.0, at::kDouble);  // finite, parameter 1, squared norm 1
  Scripted collective({other});
  const Group group{.ranks = {Rank{0}, Rank{1}}, .id = 0};
  const Ballot own{.finite = true, .squared_norms = {{1, 2.0}}};
  CHECK_THROWS_MATCHES(
      vote(collective, group, kSequence, own, patience()),
      Error,
      Catch::Matchers::MessageMatches(Catch::Matchers::ContainsSubstring("parameter 1")));
}

TEST_CASE("what is no ballot is refused", "[futures][vote]") {
  const at::Tensor other = GENERATE(as<at::Tensor>{},
                                    at::full({3}, 1.0, at::kFloat),
                                    at::full({2}, 1.0, at::kDouble),
                                    at::full({0}, 1.0, at::kDouble),
                                    at::full({1, 3}, 1.0, at::kDouble));
  Scripted collective({other});
  const Group group{.ranks = {Rank{0}, Rank{1}}, .id = 0};
  CHECK(thrown_by([&] {
          static_cast<void>(vote(collective, group, kSequence, Ballot{}, patience()));
        }) == Errc::Internal);
}

}  // namespace
}  // namespace stagecraft
