#include "stagecraft/futures/collective/vote.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "stagecraft/futures/collective/transport_collective.h"
#include "stagecraft/futures/transport/inproc.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t kParameters = 12;  // of the model
constexpr Sequence kSequence{.epoch = Epoch{0}, .submission = Submission{1}, .number = 0};

/// Holds a rank's collectives, and records the ranks it has gathered from.
class Gatherings final : public Collective {
 public:
  explicit Gatherings(std::shared_ptr<Transport> transport) : over_(std::move(transport)) {}

  std::unique_ptr<PendingResult> all_gather(const Group& group,
                                            const Sequence& sequence,
                                            at::Tensor contribution) override {
    heard_.insert(group.ranks.begin(), group.ranks.end());
    return over_.all_gather(group, sequence, std::move(contribution));
  }
  std::unique_ptr<PendingResult> all_reduce(const Group&, const Sequence&, at::Tensor) override {
    return nullptr;
  }
  std::unique_ptr<PendingResult> reduce_scatter(const Group&,
                                                const Sequence&,
                                                at::Tensor) override {
    return nullptr;
  }
  std::unique_ptr<PendingResult> all_to_all(const Group&, const Sequence&, at::Tensor) override {
    return nullptr;
  }

  [[nodiscard]] std::size_t others() const { return heard_.size() - 1; }

 private:
  TransportCollective over_;
  std::set<Rank> heard_;
};

/// Returns the result on every rank if rank r casts ballots[r]. `most_heard`: the largest number of
/// other ranks that a rank has heard from.
std::vector<VoteResult> vote_of(std::vector<Ballot> ballots, std::size_t* most_heard = nullptr) {
  const InprocNetwork network(static_cast<int>(ballots.size()));
  Group group;
  for (std::size_t rank = 0; rank < ballots.size(); ++rank) {
    group.ranks.emplace_back(rank);
  }
  for (std::size_t rank = 0; rank < ballots.size(); ++rank) {
    ballots[rank].rank = Rank{rank};
  }
  std::vector<std::size_t> heard(ballots.size());
  std::vector<VoteResult> results(ballots.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t rank = 0; rank < ballots.size(); ++rank) {
      threads.emplace_back([&, rank] {
        Gatherings collective(network.endpoint(Rank{rank}));
        results[rank] = vote(collective, group, kSequence, ballots[rank], patience());
        heard[rank] = collective.others();
      });
    }
  }
  if (most_heard != nullptr) {
    *most_heard = std::ranges::max(heard);
  }
  return results;
}

/// Returns the squared norms of twelve parameters, which span many magnitudes so that another order
/// gives other bits.
double squared_norm(std::int64_t parameter) {
  return std::pow(10.0, static_cast<double>(parameter % 5) * 4 - 8) / 3;
}

TEST_CASE("all ranks learn the same norm, bit-equal for any cut and order of ballots (VO-1)",
          "[futures][vote]") {
  double sum = 0.0;
  for (std::int64_t p = 0; p < kParameters; ++p) {
    sum += squared_norm(p);
  }
  const auto expected = std::bit_cast<std::uint64_t>(std::sqrt(sum));

  const int ranks = GENERATE(1, 2, 3, 4, 16, 17, 23, 36, 43);
  const bool interleaved = GENERATE(false, true);
  std::vector<Ballot> ballots(static_cast<std::size_t>(ranks), {.model_parameters = kParameters});
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
      {.model_parameters = kParameters, .finite = true, .squared_norms = {{4, 1.0}, {5, 1.0}}},
      {.model_parameters = kParameters, .finite = false, .squared_norms = {{3, bad}, {2, 1.0}}},
      {.model_parameters = kParameters, .finite = false, .squared_norms = {{1, bad}, {0, 1.0}}},
  };
  for (const VoteResult& result : vote_of(ballots)) {
    CHECK_FALSE(result.all_finite);
    CHECK(result.first_non_finite_parameter == 1);
    CHECK(result.first_non_finite_rank == Rank{1});
    CHECK_FALSE(std::isfinite(result.total_norm));
  }
}

TEST_CASE("each of many ranks hears from a few and learns the ballots of all (VO-2)",
          "[futures][vote]") {
  const std::size_t ranks = GENERATE(17, 19, 25, 31, 37);
  const std::size_t bad = GENERATE_COPY(std::size_t{0}, ranks / 2, ranks - 1);
  std::vector<Ballot> ballots(ranks, {.model_parameters = 1, .mirrored = 7});
  ballots[bad].finite = false;
  ballots[ranks - 1 - bad].mirrored = 3;
  ballots[(bad + 5) % ranks].squared_norms = {{0, 16.0}};
  std::size_t heard = 0;
  for (const VoteResult& result : vote_of(ballots, &heard)) {
    CHECK(result.first_non_finite_rank == Rank{bad});
    CHECK(result.total_norm == 4.0);
    CHECK(result.mirrored == 3);
  }
  CHECK(heard <= 3 * static_cast<std::size_t>(std::ceil(std::sqrt(ranks))));
}

TEST_CASE("if several ranks found something, the result names the lowest", "[futures][vote]") {
  const std::size_t ranks = GENERATE(3, 20);
  std::vector<Ballot> ballots(ranks, {.model_parameters = 1});
  ballots[1].finite = false;
  ballots[ranks - 1].squared_norms = {{0, kInf}};
  for (const VoteResult& result : vote_of(ballots)) {
    CHECK(result.first_non_finite_rank == Rank{1});
    CHECK(result.first_non_finite_parameter == 0);
  }
}

TEST_CASE("a norm that is not finite counts even when its ballot says finite", "[futures][vote]") {
  const std::vector<VoteResult> results = vote_of({{2, true, {{0, 1.0}}}, {2, true, {{1, kNan}}}});
  CHECK_FALSE(results[0].all_finite);
  CHECK(results[0].first_non_finite_parameter == 1);
  CHECK(results[0].first_non_finite_rank == Rank{1});
}

TEST_CASE("a rank without parameters can say that its loss is not finite", "[futures][vote]") {
  for (const VoteResult& result : vote_of({{1, true, {{0, 9.0}}}, {1, false, {}}})) {
    CHECK_FALSE(result.all_finite);
    CHECK(result.first_non_finite_rank == Rank{1});
    CHECK_FALSE(result.first_non_finite_parameter);
    CHECK(result.total_norm == 3.0);
  }
}

TEST_CASE("a vote without parameters is finite and zero", "[futures][vote]") {
  const std::vector<VoteResult> results = vote_of({{}, {}});
  CHECK(results[1].all_finite);
  CHECK(results[1].total_norm == 0.0);
}

TEST_CASE("frozen parameters, which are on no ballot, do not count", "[futures][vote]") {
  for (const VoteResult& result : vote_of({{5, true, {{1, 9.0}}}, {5, true, {{3, 16.0}}}})) {
    CHECK(result.all_finite);
    CHECK(result.total_norm == 5.0);
  }
}

/// Returns rank 0's complaint about its ballot, after rank 1 has cast one and has closed.
std::string refused(const Ballot& own, const Ballot& other) {
  const InprocNetwork network(2);
  const Group group{.ranks = {Rank{0}, Rank{1}}, .id = 0};
  TransportCollective one(network.endpoint(Rank{1}));
  CHECK(thrown_by([&] { static_cast<void>(vote(one, group, kSequence, other, already_over())); }) ==
        Errc::ClusterTimeout);
  TransportCollective zero(network.endpoint(Rank{0}));
  return refusal([&] { static_cast<void>(vote(zero, group, kSequence, own, patience())); },
                 Errc::Internal);
}

TEST_CASE("a parameter that two ranks claim is our bug, and the error names it",
          "[futures][vote]") {
  const Ballot own{3, true, {{1, 2.0}}};
  CHECK_THAT(refused(own, {3, true, {{1, 1.0}}}),
             ContainsSubstring("two ballots hold parameter 1"));
  CHECK_THAT(refused({3, true, {{1, 2.0}, {1, 2.0}}}, {3, true, {}}),
             ContainsSubstring("parameter 1 twice"));
}

TEST_CASE("ballots about another model, or about a parameter that the model lacks, are refused",
          "[futures][vote]") {
  CHECK_THAT(refused({3, true, {}}, {2, true, {}}), ContainsSubstring("rank 1 sends 4"));
  const std::int64_t beyond = GENERATE(-1, 3);
  CHECK_THAT(refused({3, true, {{beyond, 1.0}}}, {3, true, {}}),
             ContainsSubstring("of a model with 3"));
}

}  // namespace
}  // namespace stagecraft
