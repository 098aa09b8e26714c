#include "stagecraft/tools/program/program_costs.h"

#include <string>

#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>

#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/program/cut_report.h"
#include "stagecraft/examples/models/llama.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft::tools {
namespace {

using Catch::Matchers::ContainsSubstring;

constexpr int kSamples = 2;
constexpr int kMicrobatchesOfCosts = 3;

/// Scales each row of a batch.
struct Scale : torch::nn::Module {
  at::Tensor factor = register_parameter("factor", at::ones({4}));
  at::Tensor forward(const at::Tensor& shift, const at::Tensor& x) { return x * factor + shift; }
};

examples::LlamaOptions tiny_llama() {
  return {
      .vocabulary = 20, .layers = 2, .dim = 16, .heads = 2, .ffn = 24, .sequence = 8, .stages = 2};
}

Batch tokens() {
  return {at::arange(kSamples * kMicrobatchesOfCosts * 8).remainder(20).view({-1, 8})};
}

Program compiled(Cut cut = AtMarkers{}, const examples::LlamaOptions& options = tiny_llama()) {
  return compile(examples::Llama(options),
                 {.inputs = tokens(),
                  .labels = tokens(),
                  .loss = examples::next_token_loss,
                  .microbatches = kMicrobatchesOfCosts,
                  .cut = std::move(cut)});
}

Costs costs_of_program(const Program& program) {
  return operator_costs(program, tokens(), tokens(), /*threads=*/1);
}

double forward_of_all(const Costs& costs) {
  double sum = 0;
  for (const OperatorCost& cost : costs.operators) {
    sum += cost.forward;
  }
  return sum;
}

TEST_CASE("the samples of a microbatch are those of the first input that is split",
          "[tools][costs]") {
  const auto program_of = [](const Batch& inputs) {
    return compile(Scale(),
                   {.inputs = inputs,
                    .labels = {},
                    .loss = [](const at::Tensor& y) { return y.mean(); },
                    .microbatches = 2});
  };
  CHECK(samples_of(program_of({replicated(at::ones({4})), at::ones({6, 4})})) == 3);
  CHECK(samples_of(program_of({at::ones({6, 4}), at::ones({6, 4})})) == 3);
  CHECK(samples_of(program_of({replicated(at::ones({4})), replicated(at::ones({5, 4}))})) == 1);
}

TEST_CASE("a program's operators are measured once, with its parameters and the size of its step",
          "[tools][costs]") {
  const Program marked = compiled();
  const Costs costs = costs_of_program(marked);
  CHECK(costs.device.threads == 1);
  CHECK(costs.samples == kSamples);
  CHECK(costs.batch == kSamples * kMicrobatchesOfCosts);
  CHECK(forward_of_all(costs) > 0);
  double bytes = 0;
  for (const ParameterCost& parameter : costs.parameters) {
    CHECK(parameter.held == 4 * parameter.bytes);  // with its gradient and two states
    bytes += parameter.bytes;
  }
  CHECK(bytes == weight_bytes(tiny_llama()));
  // A balanced cut has measured them already.
  const Program balanced = compiled(Balanced{.stages = 2});
  REQUIRE_FALSE(balanced.cut().operators.empty());
  CHECK(forward_of_all(costs_of_program(balanced)) ==
        forward_of_all({.operators = balanced.cut().operators}));
}

TEST_CASE("costs fit every cut of their model, and no other model", "[tools][costs]") {
  const Costs costs = costs_of_program(compiled());
  CHECK_FALSE(first_difference(costs, compiled(At{"layers.1"})));
  CHECK_FALSE(first_difference(costs, compiled(At{})));

  examples::LlamaOptions deeper = tiny_llama(), wider = tiny_llama();
  deeper.layers = 3;
  wider.ffn = 32;
  CHECK_THAT(first_difference(costs, compiled(AtMarkers{}, deeper)).value(),
             ContainsSubstring("it has " + std::to_string(costs.operators.size()) +
                               " operators, the model "));
  CHECK_THAT(first_difference(costs, compiled(AtMarkers{}, wider)).value(),
             ContainsSubstring("its parameter layers.0.") &&
                 ContainsSubstring(" has 1536 bytes, the model's 2048"));
  Costs renamed = costs;
  renamed.operators[3].name = "aten::none";
  CHECK_THAT(first_difference(renamed, compiled()).value(),
             ContainsSubstring("its operator 3 is aten::none, the model's aten::"));
  // Costs that a user states need not list the parameters.
  Costs unlisted = costs;
  unlisted.parameters.clear();
  CHECK_FALSE(first_difference(unlisted, compiled()));
}

TEST_CASE("the costs of stages are the sums of their operators, on the program's cut",
          "[tools][costs]") {
  const Costs costs = costs_of_program(compiled(At{}));
  const Costs made = with_stages(costs, compiled());
  REQUIRE(made.stages.each.size() == 2);
  double sums[2] = {0, 0};
  for (const OperatorCost& cost : made.operators) {
    sums[cost.stage.index()] += cost.forward;
  }
  CHECK((sums[0] > 0 && sums[1] > 0));
  CHECK(made.stages.each[0].forward == Catch::Approx(sums[0]));
  CHECK(made.stages.each[1].forward == Catch::Approx(sums[1]));
  CHECK(sums[0] + sums[1] == Catch::Approx(forward_of_all(costs)));
  // The hidden states of a microbatch pass on: samples, tokens, features, bytes of each.
  CHECK(made.links.edge_bytes.at({0, 1}) == kSamples * 8 * 16 * 4);
  CHECK((made.parameters == costs.parameters));
}

TEST_CASE("costs that make no graph are refused", "[tools][costs][bad-input]") {
  const Program program = compiled();
  Costs costs = costs_of_program(program);
  costs.operators[0].reads = {{.producer = 1, .output = 0, .bytes = 4}};
  CHECK_THAT(refusal([&] { (void)with_stages(costs, program); }),
             ContainsSubstring("operator 0 reads 1, which is not among the operators before it"));
}

}  // namespace
}  // namespace stagecraft::tools
