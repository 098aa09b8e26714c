/// Small programs with experts in regions, and their plans with divided experts.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <torch/torch.h>

#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/lower/lower.h"
#include "stagecraft/compiler/shapes/in_chunks.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/scheduler/strategy/strategy_of.h"
#include "stagecraft/tests/support/modules.h"

namespace stagecraft::testing {

/// Each stage has four experts in a region EP behind a layer.
struct ExpertChain : torch::nn::Module {
  static constexpr std::int64_t kExperts = 4, kWidth = 8;

  /// Computes the experts of a stage: [experts, rows, width] to the same.
  using Body = std::function<torch::Tensor(ExpertChain&, std::size_t stage, torch::Tensor in)>;

  explicit ExpertChain(int stages, Body experts = nullptr) : body(std::move(experts)) {
    for (int s = 0; s < stages; ++s) {
      const std::string name = std::to_string(s);
      layers.push_back(register_module("layer" + name, torch::nn::Linear(kWidth, kWidth)));
      gates.push_back(register_module("gate" + name, torch::nn::Linear(kWidth, kExperts)));
      weights.push_back(
          register_parameter("experts" + name, torch::randn({kExperts, kWidth, kWidth}) * 0.3));
    }
  }

  torch::Tensor compute(std::size_t stage, const torch::Tensor& in) {
    return body ? body(*this, stage, in) : torch::tanh(torch::bmm(in, weights[stage]));
  }

  torch::Tensor forward(torch::Tensor x) {
    for (std::size_t s = 0; s < layers.size(); ++s) {
      x = stage("s" + std::to_string(s), [&] {
        const torch::Tensor h = torch::tanh(layers[s](x));
        const torch::Tensor in = torch::einsum("ne,nd->end", {torch::softmax(gates[s](h), -1), h});
        const torch::Tensor out = region("EP", [&] { return compute(s, in); });
        return h + out.sum(0);
      });
    }
    return x;
  }

  Body body;
  std::vector<torch::nn::Linear> layers, gates;
  std::vector<torch::Tensor> weights;
};

inline Program expert_program(int stages, int microbatches, ExpertChain::Body body = nullptr) {
  ExpertChain module(stages, std::move(body));
  const auto x = torch::randn({3 * microbatches, ExpertChain::kWidth});
  return compile(module,
                 {.inputs = {x}, .labels = {x}, .loss = mean_square, .microbatches = microbatches});
}

/// A program in the chunks of a strategy, and its plan.
struct DividedPlan {
  Program program;
  Plan plan;
};

/// Divides the experts of all stages among copies of a schedule's rows.
inline DividedPlan divided_plan(const Program& program,
                                const Schedule& rows,
                                int copies = 2,
                                const ReplicateOptions& sums = {},
                                int parts = 0) {
  const Schedule schedule = in_copies(rows, copies);
  const Layout layout = Layout::of(schedule);
  std::vector<DividedRegion> divided;
  for (int s = 0; s < layout.stages(); ++s) {
    divided.push_back({StageId(s), "EP", parts});
  }
  const Strategy strategy = strategy_of(schedule, layout, sums, divided);
  Program chunked = in_chunks(program, strategy, layout);
  Plan plan = lower(chunked, strategy, layout, /*training=*/true).plan;
  return {std::move(chunked), std::move(plan)};
}

}  // namespace stagecraft::testing
