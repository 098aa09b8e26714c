#include "stagecraft/actors/profile/placed_times.h"

#include <ATen/ops/zeros.h>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

TEST_CASE("a backward in a step is divided by what values and parameters take alone", "[profile]") {
  std::vector<OperatorCost> costs{
      {.id = 0, .forward = 1, .backward_input = 1, .backward_weight = 3},
      {.id = 1, .forward = 3, .backward_input = 2},
      {.id = 2}};
  place_times({.operators = {{.forward = 2, .backward = 6, .sums = 2},
                             {.forward = 6, .backward = 4, .sums = 1},
                             {.forward = 0.5, .backward = 0.25}},
               .microbatches = {18.75}},
              costs);
  CHECK(costs[0].forward == 2);
  CHECK(costs[1].forward == 6);
  CHECK(costs[2].forward == 0.5);
  CHECK(costs[0].backward_input == 1);
  CHECK(costs[0].backward_weight == 5);  // with the sums of its parameters' gradients
  CHECK(costs[0].sums == 2);
  CHECK(costs[1].backward_input == 4);  // with the sums of its values' gradients
  CHECK(costs[1].backward_weight == 0);
  CHECK(costs[2].backward_input == 0.25);
  double all = 0;
  for (const OperatorCost& cost : costs) {
    all += cost.forward + cost.backward_input + cost.backward_weight;
  }
  CHECK(all == 18.75);
}

TEST_CASE("an operator needs what is held while it runs beyond what is kept before it",
          "[profile]") {
  std::vector<OperatorCost> costs{
      {.id = 0, .kept = 10, .transient = 99}, {.id = 1, .kept = 20}, {.id = 2, .kept = 5}};
  place_peaks({.operators = {{.forward_peak = 45, .backward_peak = 12},
                             {.forward_peak = 8},
                             {.forward_peak = 45, .backward_peak = 16}}},
              costs);
  CHECK(costs[0].transient == 45);
  CHECK(costs[1].transient == 0);
  CHECK(costs[2].transient == 16);  // more than the 45 - 30 of its forward
}

TEST_CASE("operators whose halves were not measured get the usual share of what they keep",
          "[profile][memory]") {
  std::vector<OperatorCost> costs{
      {.id = 0, .kept = 40}, {.id = 1, .kept = 10}, {.id = 2, .kept = 30}};
  CHECK(place_waiting({std::nullopt, WaitingBytes{4, 6}, WaitingBytes{16, 24}}, costs) == 1.25);
  CHECK(costs[0].waiting == 50);  // 20 of values and 30 of gradients for 40 kept
  CHECK(costs[0].gradient == 30);
  CHECK(costs[1].waiting == 10);
  CHECK(costs[1].gradient == 6);
  std::vector<OperatorCost> unknown{{.id = 0, .kept = 40}};
  CHECK(place_waiting({}, unknown) == 1);
  CHECK(unknown[0].waiting == 0);
}

TEST_CASE("an update is put down to the first that uses a parameter, by bytes", "[profile]") {
  std::vector<OperatorCost> costs{{.id = 0, .parameters = {"a"}},
                                  {.id = 1, .parameters = {"a", "frozen", "b"}}};
  const std::vector<NamedTensor> all{{"a", at::zeros({4}).requires_grad_(true)},
                                     {"frozen", at::zeros({2})},
                                     {"unused", at::zeros({8}).requires_grad_(true)},
                                     {"b", at::zeros({12}).requires_grad_(true)}};
  const std::vector<ParameterCost> parameters = place_updates(all, 1, /*states=*/2, false, costs);
  CHECK(
      (parameters == std::vector<ParameterCost>{{"a", 16, 64}, {"frozen", 8, 8}, {"b", 48, 192}}));
  CHECK(costs[0].update == 0.25);
  CHECK(costs[1].update == 0.75);
}

TEST_CASE("a parameter in a half type holds its master, and states as wide", "[profile][memory]") {
  std::vector<OperatorCost> costs{{.id = 0, .parameters = {"half", "float"}}};
  const std::vector<NamedTensor> all{{"half", at::zeros({4}, at::kBFloat16).requires_grad_(true)},
                                     {"float", at::zeros({4}).requires_grad_(true)}};
  const auto held = [&](bool masters) {
    const auto found = place_updates(all, 1, /*states=*/2, masters, costs);
    return std::pair(found[0].held, found[1].held);
  };
  CHECK(held(false) == std::pair(4 * 8.0, 4 * 16.0));
  CHECK(held(true) == std::pair(2 * 8.0 + 3 * 16.0, 4 * 16.0));
}

}  // namespace
}  // namespace stagecraft
