/// Tests sums over the copies of a stage: on several ranks, and of several copies on one.
#include "stagecraft/actors/executor/commit/replica_sum.h"

#include <cmath>

#include <torch/torch.h>

#include "stagecraft/tests/actors/executor/commit/ranks_together.h"
#include "stagecraft/tests/actors/executor/run/one_rank.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

/// Returns gradients whose sum depends on the order of additions.
torch::Tensor gradients_of(int copy, const torch::Tensor& like) {
  const torch::Tensor numbers = torch::arange(like.numel(), like.options()).view_as(like);
  return torch::sin(numbers + copy) * std::pow(10.0, copy);
}

/// Makes a bucket that holds the gradients of a copy.
Bucket bucket_of(const StageProgram& stage, int copy) {
  Bucket bucket(stage, Sgd{});
  bucket.flat_gradients()[0].copy_(gradients_of(copy, bucket.flat_gradients()[0]));
  return bucket;
}

TEST_CASE("CL-1: all copies of a stage get one sum, added in ascending order of rank",
          "[executor][commit]") {
  const testing::SmallChain chain = testing::small_chain(1);
  const StageProgram& stage = chain.program.compiled().partition.stages[0];
  std::vector<torch::Tensor> found(3);
  testing::on_ranks(3, [&](Rank rank, Collective& collective) {
    const Bucket bucket = bucket_of(stage, rank.value);
    sum_over_replicas(collective,
                      {.ranks = {Rank(0), Rank(1), Rank(2)}, .id = 1},
                      {&bucket},
                      {},
                      testing::in_a_minute());
    found[rank.index()] = bucket.flat_gradients()[0].clone();
  });
  torch::Tensor sum = gradients_of(0, found[0]);
  for (const int copy : {1, 2}) {
    sum = sum + gradients_of(copy, found[0]);
  }
  for (const torch::Tensor& of_rank : found) {
    CHECK(torch::equal(of_rank, sum));
  }
}

TEST_CASE("copies on one rank are added before the others are", "[executor][commit]") {
  const testing::SmallChain chain = testing::small_chain(1);
  const StageProgram& stage = chain.program.compiled().partition.stages[0];
  std::vector<torch::Tensor> found(2), of_second(2);
  testing::on_ranks(2, [&](Rank rank, Collective& collective) {
    const Bucket first = bucket_of(stage, 2 * rank.value);
    const Bucket second = bucket_of(stage, 2 * rank.value + 1);
    sum_over_replicas(collective,
                      {.ranks = {Rank(0), Rank(1)}, .id = 1},
                      {&first, &second},
                      {},
                      testing::in_a_minute());
    found[rank.index()] = first.flat_gradients()[0].clone();
    of_second[rank.index()] = second.flat_gradients()[0].clone();
  });
  const auto of = [&](int copy) { return gradients_of(copy, found[0]); };
  CHECK(torch::equal(found[0], (of(0) + of(1)) + (of(2) + of(3))));
  CHECK(torch::equal(found[1], found[0]));
  CHECK(torch::equal(of_second[0], found[0]));
  CHECK(torch::equal(of_second[1], found[0]));
}

TEST_CASE("a rank of a replica group holds one of its stages", "[executor][commit]") {
  CHECK_THROWS_AS(
      testing::on_ranks(1,
                        [](Rank rank, Collective& collective) {
                          sum_over_replicas(
                              collective, {.ranks = {rank}}, {}, {}, testing::in_a_minute());
                        }),
      Error);
}

}  // namespace
}  // namespace stagecraft
