/// Tests buckets with masters: what they keep, in which types, and how masters follow weights that
/// are loaded.
#include <algorithm>
#include <map>
#include <set>
#include <string>

#include <torch/torch.h>

#include "stagecraft/actors/executor/optimizer/state_names.h"
#include "stagecraft/actors/executor/stage/stage_runtime.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/module/markers.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/program/program.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/modules.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

constexpr std::int64_t kHalfWidth = 64;

/// Has a layer in bfloat16 and scales in float32.
struct HalfAndFloat : torch::nn::Module {
  torch::nn::Linear layer{register_module("layer", torch::nn::Linear(kHalfWidth, kHalfWidth))};
  torch::Tensor scale = register_parameter("scale", torch::ones({kHalfWidth}));
  HalfAndFloat() { layer->to(torch::kBFloat16); }
  torch::Tensor forward(torch::Tensor x) {
    return stage("whole", [&] { return layer(x.to(torch::kBFloat16)).to(torch::kFloat) * scale; });
  }
};

Program half_and_float() {
  torch::manual_seed(21);
  HalfAndFloat module;
  return compile(module,
                 {.inputs = {torch::randn({4, kHalfWidth})},
                  .labels = {torch::randn({4, kHalfWidth})},
                  .loss = testing::mean_square,
                  .microbatches = 2});
}

const BucketOptions kMasterBuckets{.groups = {}, .master_weights = true, .lent_memory = {}};

std::map<std::string, torch::Tensor> named_state_of(const StageBuckets& buckets) {
  std::map<std::string, torch::Tensor> all;
  for (const NamedTensor& state : buckets.state()) {
    all.emplace(state.name, state.tensor);
  }
  return all;
}

TEST_CASE("a bucket keeps a master of each parameter in a half type, and state like it",
          "[executor][bucket][masters]") {
  const Program program = half_and_float();
  const StageBuckets bucket(program.compiled().partition.stages[0], AdamW{}, kMasterBuckets);
  std::map<std::string, std::string> types;
  std::size_t bytes = 0;  // beside the weights
  for (const auto& [name, tensor] : named_state_of(bucket)) {
    types.emplace(name, at::toString(tensor.scalar_type()));
    bytes += name.starts_with(kWeight) ? 0 : tensor.nbytes();
  }
  std::map<std::string, std::string> expected;
  for (const std::string name : {"layer.weight", "layer.bias", "scale"}) {
    const bool half = name != "scale";
    expected.emplace("weight:" + name, half ? "BFloat16" : "Float");
    expected.emplace("exp_avg:" + name, "Float");
    expected.emplace("exp_avg_sq:" + name, "Float");
    if (half) {
      expected.emplace("master:" + name, "Float");
    }
  }
  CHECK(types == expected);
  CHECK(bytes == 3 * 4 * (kHalfWidth + 1) * kHalfWidth + 2 * 4 * kHalfWidth);
}

TEST_CASE("masters and averages follow the weights that are loaded, unless they are loaded too",
          "[executor][bucket][masters]") {
  const Program program = half_and_float();
  const CompiledProgram& compiled = program.compiled();
  BucketOptions options = kMasterBuckets;
  options.average = 0.5;
  StageRuntime runtime(compiled.partition.stages[0], Sgd{}, options);
  const auto now = [&](const std::string& name) {
    return named_state_of(runtime.buckets).at(name);
  };
  const std::vector<NamedTensor> first = initial_state(compiled.graph);
  runtime.load(first);
  const torch::Tensor weight = now("weight:layer.weight").clone();
  CHECK(weight.any().item<bool>());
  for (const char* name : {"master:layer.weight", "average:layer.weight"}) {
    CHECK(torch::equal(now(name), weight.to(torch::kFloat)));
  }
  CHECK(torch::equal(now("average:scale"), now("weight:scale")));
  const torch::Tensor fine = weight.to(torch::kFloat) + 1e-5;
  runtime.load({{"weight:layer.weight", weight}, {"master:layer.weight", fine}});
  CHECK(torch::equal(now("master:layer.weight"), fine));
  CHECK(torch::equal(now("average:layer.weight"), fine));  // the weight, as fine as it is known
  runtime.load({{"weight:scale", torch::zeros({kHalfWidth})}});
  CHECK(torch::equal(now("master:layer.weight"), fine));
  CHECK_FALSE(now("average:scale").any().item<bool>());
  runtime.load(first);
  CHECK(torch::equal(now("master:layer.weight"), weight.to(torch::kFloat)));
}

TEST_CASE("a bucket updates and averages through masters, limited elements included",
          "[executor][bucket][masters]") {
  const Program program = half_and_float();
  const CompiledProgram& compiled = program.compiled();
  BucketOptions options = kMasterBuckets;
  options.average = 0.5;
  StageRuntime runtime(compiled.partition.stages[0], Sgd{}, options);
  runtime.load(initial_state(compiled.graph));
  const torch::Tensor before = named_state_of(runtime.buckets).at("master:layer.weight").clone();
  std::vector<torch::Tensor> gradients;
  for (const torch::Tensor& parameter : runtime.buckets.parameters()) {
    gradients.push_back(torch::randn_like(parameter).detach());
  }
  const auto of_weight =
      std::ranges::find(gradients, 2, [](const torch::Tensor& gradient) { return gradient.dim(); });
  REQUIRE(of_weight != gradients.end());
  const torch::Tensor given = of_weight->clone();  // the bucket may take the tensor itself
  runtime.buckets.begin_step();
  runtime.buckets.accumulate(gradients);
  runtime.buckets.update(1e-3, {.weight = 3.0, .most = 0.25}, {1});
  const torch::Tensor applied =
      given.to(torch::kFloat).div(3.0).clamp(-0.25, 0.25);  // not of the rounded mean
  const auto state = named_state_of(runtime.buckets);
  CHECK(torch::allclose(state.at("master:layer.weight"), before - applied * 1e-3, 1e-6, 1e-8));
  CHECK(torch::equal(state.at("weight:layer.weight"),
                     state.at("master:layer.weight").to(torch::kBFloat16)));
  CHECK(torch::equal(state.at("average:layer.weight"),
                     before * 0.5 + state.at("master:layer.weight") * 0.5));
  CHECK(torch::equal(runtime.buckets.gradient("layer.weight"), applied.to(torch::kBFloat16)));
}

TEST_CASE("averages of a half type need masters", "[executor][bucket][masters]") {
  const Program program = half_and_float();
  const StageProgram& stage = program.compiled().partition.stages[0];
  const BucketOptions without{.groups = {}, .average = 0.9, .lent_memory = {}};
  CHECK_THAT(refusal([&] { const StageBuckets none(stage, Sgd{}, without); }),
             Catch::Matchers::ContainsSubstring("set master_weights"));
  BucketOptions with = without;
  with.master_weights = true;
  CHECK_NOTHROW(StageBuckets(stage, Sgd{}, with));
}

}  // namespace
}  // namespace stagecraft
