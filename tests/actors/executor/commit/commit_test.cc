/// Tests the end of a training step on one rank.
#include "stagecraft/actors/executor/commit/commit.h"

#include <future>
#include <limits>

#include <torch/torch.h>

#include "stagecraft/base/manual_clock.h"
#include "stagecraft/tests/actors/executor/run/one_rank.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/eventually.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using testing::OneRank;

struct CommittingRank {
  testing::SmallChain chain = testing::small_chain(1);
  OneRank rank;
  StageBuckets& bucket = rank.programs.trained()[0].buckets;

  explicit CommittingRank(const TrainerOptions& options = {})
      : rank(chain.program, Schedule::parse("@form list\n0F0 0F1 0B0 0B1\n"), options) {}

  void begin(const StepOrder& order) {
    rank.times().begin_step();
    rank.commit.begin_step(order, {.submission = order.submission});
  }
  /// Adds gradients of that value for every microbatch of a batch.
  void accumulate(double value) {
    for (int m = 0; m < testing::kOneRankMicrobatches; ++m) {
      std::vector<torch::Tensor> gradients;
      for (const torch::Tensor& parameter : bucket.parameters()) {
        gradients.push_back(torch::full_like(parameter, value));
      }
      bucket.accumulate(gradients);
    }
  }
  [[nodiscard]] double first_weight() const {
    return bucket.parameters()[0].flatten()[0].item<double>();
  }
};

TEST_CASE("CT-1: no weight changes before the vote", "[executor][commit]") {
  CommittingRank f;
  const StepOrder order{.learning_rate = 0.5};
  const double before = f.first_weight();
  f.begin(order);
  f.accumulate(2.0);
  CHECK_FALSE(f.rank.commit.is_past_the_vote());
  f.rank.commit.cast_vote({});
  CHECK(f.rank.commit.is_past_the_vote());
  CHECK(f.first_weight() == before);
  f.rank.commit.update(f.rank.programs.trained()[0], 0);
  CHECK(f.first_weight() == Catch::Approx(before - 0.5 * 2.0));
  f.begin({.submission = Submission(1)});
  CHECK_FALSE(f.rank.commit.is_past_the_vote());
}

TEST_CASE("CT-2: the mean is over the microbatches of all batches of an update",
          "[executor][commit]") {
  CommittingRank f;
  const double before = f.first_weight();
  f.begin({.learning_rate = 1.0, .updates = false});
  f.accumulate(1.0);
  f.begin({.submission = Submission(1), .learning_rate = 1.0, .accumulated = 1});
  f.accumulate(4.0);
  f.rank.commit.cast_vote({});
  f.rank.commit.update(f.rank.programs.trained()[0], 0);
  CHECK(f.first_weight() == Catch::Approx(before - 2.5));
}

TEST_CASE("the vote's norm is that of the mean, and clips the update", "[executor][commit]") {
  CommittingRank f;
  f.begin({.learning_rate = 1.0, .clip = 0.5});
  f.accumulate(3.0);
  const torch::Tensor before = f.bucket.parameters()[0].detach().clone();
  f.rank.commit.cast_vote({});
  std::int64_t elements = 0;
  for (const torch::Tensor& parameter : f.bucket.parameters()) {
    elements += parameter.numel();
  }
  const double norm = 3.0 * std::sqrt(static_cast<double>(elements));
  CHECK(f.rank.commit.gradient_norm() == Catch::Approx(norm));
  f.rank.commit.update(f.rank.programs.trained()[0], 0);
  CHECK((before - f.bucket.parameters()[0]).max().item<double>() ==
        Catch::Approx(0.5 / norm * 3.0).epsilon(1e-4));
}

TEST_CASE("a loss that is not finite is refused with its place, before the vote",
          "[executor][commit]") {
  CommittingRank f;
  f.begin({.step = Step(3)});
  const std::vector<MicrobatchLoss> losses{
      {Microbatch(0), 1.0}, {Microbatch(1), std::numeric_limits<double>::infinity()}};
  try {
    f.rank.commit.cast_vote(losses);
    FAIL("it was accepted");
  } catch (const Error& error) {
    CHECK(error.code() == Errc::NonFinite);
    CHECK_THAT(error.message(), ContainsSubstring("the loss of microbatch 1 is inf"));
    CHECK(error.context().microbatch == Microbatch(1));
    CHECK(error.context().stage == StageId(0));
    CHECK(error.context().step == Step(3));
  }
  CHECK_FALSE(f.rank.commit.is_past_the_vote());
  refusal([&] { f.rank.commit.refuse_non_finite_losses(losses); }, Errc::NonFinite);
  CHECK_NOTHROW(f.rank.commit.refuse_non_finite_losses({{Microbatch(0), 1.0}}));
}

TEST_CASE("a vote that a rank does not join ends at the deadline, a time of the commit's clock",
          "[executor][commit]") {
  CommittingRank f;
  RankSetup of_two = f.rank.setup;
  of_two.ranks = {Rank(0), Rank(1)};
  const std::chrono::milliseconds limit = patience(of_two.options);
  const InprocNetwork network(2);
  const auto clock = std::make_shared<ManualClock>();
  TransportCollective collective(network.endpoint(Rank(0)), std::make_shared<WaitBoard>(clock));
  Commit commit(
      of_two, collective, *clock, f.rank.times(), f.rank.programs.trained(), /*mirror=*/nullptr);
  commit.begin_step({}, {});
  f.accumulate(1.0);
  auto voting = std::async(std::launch::async, [&] {
    return refusal([&] { commit.cast_vote({}); }, Errc::ClusterTimeout);
  });
  CHECK(eventually([&] { return clock->waits() == 1; }));
  clock->advance(limit - std::chrono::milliseconds(1));
  CHECK(voting.wait_for(std::chrono::seconds(0)) == std::future_status::timeout);
  clock->advance(std::chrono::milliseconds(1));
  CHECK_THAT(voting.get(), ContainsSubstring("rank 1"));
  CHECK_FALSE(commit.has_voted());
}

TEST_CASE("a gradient that is not finite is refused by the vote", "[executor][commit]") {
  CommittingRank f;
  f.begin({});
  f.accumulate(std::numeric_limits<double>::quiet_NaN());
  CHECK_THAT(refusal([&] { f.rank.commit.cast_vote({}); }, Errc::NonFinite),
             ContainsSubstring("no weight was changed"));
  CHECK_FALSE(f.rank.commit.is_past_the_vote());
}

}  // namespace
}  // namespace stagecraft
