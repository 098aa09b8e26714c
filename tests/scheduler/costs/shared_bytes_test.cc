#include "stagecraft/scheduler/costs/shared_bytes.h"

#include <array>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

/// The sizes of algorithms 7.6 (e): 1e9 parameters of 2 bytes, gradients of 4, states of 8. Here
/// gradients are as large as weights.
constexpr double kWeights = 2e9, kStates = 8e9;

TEST_CASE("copies keep an n-th of what they share (6.9)", "[scheduler][memory]") {
  const FixedBytes stage{.all = 2 * kWeights + kStates, .trained = kWeights, .states = kStates};
  CHECK(shared_bytes(stage, Sharing::Nothing, 4) == 12e9);
  CHECK(shared_bytes(stage, Sharing::States, 4) == 2 * kWeights + kStates / 4);
  CHECK(shared_bytes(stage, Sharing::Gradients, 4) == kWeights + (kWeights + kStates) / 4);
  CHECK(shared_bytes(stage, Sharing::Weights, 4) == 12e9 / 4);
  CHECK(shared_bytes(stage, Sharing::Weights, 1) == 12e9);
  // Where only their sum counts, 3 and 3 bytes are as good as 2 and 4.
  const FixedBytes oracle{.all = 14e9, .trained = 3e9, .states = kStates};
  CHECK(shared_bytes(oracle, Sharing::Nothing, 4) == 14e9);
  CHECK(shared_bytes(oracle, Sharing::States, 4) == 8e9);
  CHECK(shared_bytes(oracle, Sharing::Weights, 4) == 3.5e9);
}

TEST_CASE("weights that do not train are on every copy", "[scheduler][memory]") {
  const FixedBytes stage{.all = 30 + 10 + 20, .trained = 10, .states = 20};
  CHECK(shared_bytes(stage, Sharing::Weights, 2) == 20 + 40.0 / 2);
}

TEST_CASE("a rank borrows two buckets at most", "[scheduler][memory]") {
  const std::array<double, 3> small{10, 30, 20};
  CHECK(borrowed_bytes(small, Sharing::States) == 0.0);
  CHECK(borrowed_bytes(small, Sharing::Gradients) == 50.0);
  CHECK(borrowed_bytes(small, Sharing::Weights) == 100.0);
  const std::array<double, 1> large{10 * kSharedBucket};
  CHECK(borrowed_bytes(large, Sharing::Gradients) == 2 * kSharedBucket);
  const std::array<double, 1> little_more{kSharedBucket + 5};
  CHECK(borrowed_bytes(little_more, Sharing::Gradients) == kSharedBucket + 5);
}

TEST_CASE("parameters of a search take what a rank keeps", "[scheduler][memory]") {
  Costs costs;
  costs.parameters = {{"trained", 10, 40}, {"frozen", 10, 10}};
  CHECK(with_shared_parameters(costs, Sharing::States, 2).parameters[0].held == 30.0);
  CHECK(with_shared_parameters(costs, Sharing::Gradients, 2).parameters[0].held == 25.0);
  const Costs shared = with_shared_parameters(costs, Sharing::Weights, 2);
  CHECK(shared.parameters[0].held == 20.0);
  CHECK(shared.parameters[0].trained() == 5.0);
  CHECK(shared.parameters[1] == costs.parameters[1]);
}

}  // namespace
}  // namespace stagecraft
