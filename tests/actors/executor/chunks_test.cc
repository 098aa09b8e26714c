/// Tests stages of several chunks: autograd ends at their borders, some are recomputed, and
/// training has the bits of one process that does neither.
#include "stagecraft/compiler/stage/chunks.h"

#include <algorithm>
#include <cstdint>

#include <ATen/autocast_mode.h>
#include <torch/torch.h>

#include "stagecraft/actors/executor/stage/stage_runtime.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/compile.h"
#include "stagecraft/scheduler/builders/gpipe.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/builders/zero_bubble/zb_h1.h"
#include "stagecraft/tests/actors/executor/pipeline.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/modules.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using testing::differing;
using testing::Pipeline;

constexpr int kChunkMicrobatches = 4;

/// Several operators in both stages read the values that cross, and a parameter; running statistics
/// are written in between.
struct Tangled : torch::nn::Module {
  torch::Tensor w, v;
  torch::nn::BatchNorm1d norm{nullptr};
  Tangled() {
    w = register_parameter("w", torch::randn({6, 6}) * 0.3);
    v = register_parameter("v", torch::randn({6, 6}) * 0.3);
    norm = register_module("norm", torch::nn::BatchNorm1d(6));
  }
  torch::Tensor forward(torch::Tensor x) {
    const auto made = stage("front", [&] {
      const auto h = torch::tanh(torch::matmul(x, w));
      const auto g = h * h + torch::bernoulli(h * h) * h;  // uses random numbers as well
      return torch::matmul(norm(g), w.t()) + torch::relu(h) * g;
    });
    return stage("back", [&] {
      const auto a = torch::matmul(torch::sigmoid(made) + made, v);
      const auto b = a * made + torch::matmul(a, v);
      return b + a;
    });
  }
};

Program tangled(const Batch& inputs, const Batch& labels) {
  torch::manual_seed(11);
  Tangled module;
  return compile(module,
                 {.inputs = inputs,
                  .labels = labels,
                  .loss = testing::mean_square,
                  .microbatches = kChunkMicrobatches});
}

Batch batch(int seed) {
  torch::manual_seed(static_cast<std::uint64_t>(seed));
  return {torch::randn({12, 6})};
}

/// Returns the program with every stage cut before each `every`-th operator, every other chunk
/// recomputed.
Program cut(const Program& program, std::size_t every, bool recompute = false) {
  auto compiled = std::make_shared<CompiledProgram>(program.compiled());
  for (StageProgram& stage : compiled->partition.stages) {
    std::vector<std::size_t> borders;
    for (std::size_t n = every; n < stage.operator_count(); n += every) {
      borders.push_back(n);
    }
    cut_into_chunks(stage, borders);
    for (std::size_t c = 0; recompute && c < stage.chunks.size(); c += 2) {
      stage.chunks[c].recompute = true;
    }
  }
  return Program(std::move(compiled));
}

TEST_CASE("CB-1: a pipeline of chunks has the bits of one process without", "[executor][chunks]") {
  const Batch inputs = batch(1), labels = batch(2);
  const Program whole = tangled(inputs, labels);
  const auto every = GENERATE(as<std::size_t>(), 1, 2, 3, 1000);
  const bool recompute = GENERATE(false, true);
  const Program program = cut(whole, every, recompute);
  const Schedule schedules[] = {gpipe(2, kChunkMicrobatches),
                                one_f_one_b(2, kChunkMicrobatches),
                                zb_h1(2, kChunkMicrobatches)};
  for (const Schedule& schedule : schedules) {
    INFO("a chunk of " << every << " operators, recomputed: " << recompute);
    Pipeline pipeline(program, schedule, {.record_timeline = true});
    Reference reference(whole, Sgd{.lr = 0.1, .momentum = 0.9}, {.seed = 5});
    for (int step = 0; step < 3; ++step) {
      const auto outcome = pipeline.step(inputs, labels);
      const ReferenceStep expected = reference.step(inputs, labels);
      CHECK(outcome.losses == expected.losses);
      CHECK(testing::same_norm(outcome.reports[0].gradient_norm, expected.gradient_norm));
      CHECK(testing::held_at_end(outcome) == 0);
    }
    CHECK((differing(pipeline.state(), reference.state()) == std::vector<std::string>{}));
  }
}

TEST_CASE("CB-1: a forward in parts has the same bits, and without graphs keeps what is read later",
          "[executor][chunks]") {
  const Program whole = tangled(batch(1), batch(2));
  const Program in_parts = cut(whole, 2);
  const auto loaded = [&](const Program& program, std::size_t stage) {
    StageRuntime made(program.compiled().partition.stages[stage], Sgd{});
    made.load(initial_state(whole.compiled().graph));
    return made;
  };
  const RandomKey key{.seed = 5};
  at::Tensor x = torch::randn({3, 6});
  for (std::size_t s = 0; s < 2; ++s) {
    const StageRuntime one = loaded(whole, s);
    const StageRuntime parts = loaded(in_parts, s);
    // The second stage reads the label, too.
    const std::vector<at::Tensor> inputs(one.program->inputs.size(), x);
    SavedStage nothing, kept;
    const StageForward expected = one.forward(one.whole(), inputs, false, key, nothing);
    std::size_t compared = 0;
    for (std::int32_t c = 0; c < parts.whole().end(); ++c) {
      const StageForward made = parts.forward({c, 1}, inputs, false, key, kept);
      for (std::size_t o = 0; o < made.outputs.size(); ++o) {
        if (made.outputs[o].defined()) {
          CHECK(at::equal(made.outputs[o], expected.outputs[o]));
          ++compared;
        }
      }
      if (made.loss.defined()) {
        CHECK(at::equal(made.loss, expected.loss));
        ++compared;
      }
      for (std::size_t from = 0; from < kept.outputs.size(); ++from) {
        for (std::size_t o = 0; o < kept.outputs[from].size(); ++o) {
          const bool read_later =
              std::any_of(parts.chunks.begin() + c + 1, parts.chunks.end(), [&](const auto& chunk) {
                return std::ranges::any_of(chunk.inputs, [&](const auto& input) {
                  return input.chunk == from && input.position == o;
                });
              });
          CHECK(kept.outputs[from][o].defined() == read_later);
        }
      }
    }
    CHECK(compared == 1);
    CHECK(kept.outputs.empty());
    x = s == 0 ? expected.outputs[0] : x;
  }
}

/// Has regions of all kinds: one writes its input in place, which others read before and after it;
/// one has buffers and random numbers, a part without gradients and a part in another precision;
/// one lies inside another. Values have three uses and more, inside and outside of them.
struct Regions : torch::nn::Module {
  torch::nn::Linear first{register_module("first", torch::nn::Linear(6, 6))};
  torch::nn::Linear second{register_module("second", torch::nn::Linear(6, 6))};
  torch::nn::Linear third{register_module("third", torch::nn::Linear(6, 6))};
  torch::nn::BatchNorm1d norm{register_module("norm", torch::nn::BatchNorm1d(6))};
  torch::nn::Dropout drop{register_module("drop", torch::nn::Dropout(0.3))};
  torch::Tensor ticks = register_buffer("ticks", torch::zeros({1}));

  torch::Tensor mix(torch::Tensor t) {
    const auto before = torch::sigmoid(t);
    t.relu_();
    ticks.add_(1);
    const auto counted = t * torch::sin(ticks);  // differs in every microbatch
    torch::Tensor mask;
    {
      const torch::NoGradGuard none;
      mask = (t > 0.1).to(torch::kFloat);
    }
    return drop(norm(t)) * mask + before * counted;
  }

  torch::Tensor narrow(const torch::Tensor& t) {
    at::autocast::set_autocast_enabled(at::kCPU, true);
    const auto made = third(t);
    at::autocast::set_autocast_enabled(at::kCPU, false);
    at::autocast::clear_cache();
    return made.to(torch::kFloat) + t;
  }

  torch::Tensor forward(torch::Tensor x) {
    const auto h = stage("front", [&] {
      const auto a = first(x);
      const auto early = torch::sigmoid(a);
      const auto u = recompute(
          "mix", [&](torch::Tensor t) { return mix(t); }, a);
      const auto between = a * u + early;
      const auto w = recompute([&] { return torch::tanh(a) * u + a.t().t(); });
      return torch::tanh(between + u * w);
    });
    return stage("back", [&] {
      const auto v = recompute(
          [&](torch::Tensor t) {
            const auto inner = recompute("inner", [&] { return narrow(t); });
            return inner + second(t) * t;
          },
          h);
      const auto w = recompute(second, v);
      return torch::tanh(v) + h * w;
    });
  }
};

TEST_CASE("what is recomputed changes no bit of losses, weights and buffers",
          "[executor][chunks][recompute]") {
  const Batch inputs = batch(3), labels = batch(4);
  const auto compiled = [&](const Recompute& recompute) {
    torch::manual_seed(11);
    Regions module;
    return compile(module,
                   {.inputs = inputs,
                    .labels = labels,
                    .loss = testing::mean_square,
                    .microbatches = kChunkMicrobatches,
                    .recompute = recompute});
  };
  const Program plain = compiled(Recompute::nothing());
  const auto parts_of = [](const Program& program) {
    std::vector<std::string> parts;  // per stage, a letter per chunk
    for (const StageProgram& stage : program.compiled().partition.stages) {
      parts.emplace_back();
      for (const Chunk& chunk : stage.chunks) {
        parts.back() += chunk.recompute ? 'R' : '-';
      }
    }
    return parts;
  };
  using Parts = std::vector<std::string>;
  CHECK(parts_of(plain) == Parts{"-", "-"});
  const std::pair<Recompute, Parts> choices[] = {
      {Recompute{}, {"-R-R-", "RR-"}},
      {Recompute::stages(), {"R", "R"}},
      {Recompute::named({"mix", "inner"}), {"-R-", "R-"}},
      {Recompute::named({"first", "second"}), {"R-", "-R-"}},
      {Recompute::named({"back", "first"}), {"R-", "R"}}};
  for (const auto& [recompute, parts] : choices) {
    const Program program = compiled(recompute);
    CHECK(parts_of(program) == parts);
    const Schedule schedules[] = {gpipe(2, kChunkMicrobatches),
                                  one_f_one_b(2, kChunkMicrobatches),
                                  zb_h1(2, kChunkMicrobatches)};
    for (const Schedule& schedule : schedules) {
      INFO(program.explain());
      Pipeline pipeline(program, schedule, {.record_timeline = true});
      Reference reference(plain, Sgd{.lr = 0.1, .momentum = 0.9}, {.seed = 5});
      for (int step = 0; step < 2; ++step) {
        const auto outcome = pipeline.step(inputs, labels);
        for (const auto& error : outcome.errors) {
          INFO((error ? error->what() : ""));
          REQUIRE_FALSE(error.has_value());
        }
        CHECK(outcome.losses == reference.step(inputs, labels).losses);
        CHECK(testing::held_at_end(outcome) == 0);
        CHECK(pipeline.step(inputs, labels, /*training=*/false).losses.size() ==
              kChunkMicrobatches);
      }
      CHECK((differing(pipeline.state(), reference.state()) == std::vector<std::string>{}));
    }
  }
}

TEST_CASE("the graphs of a chunk hold nothing of the chunks before it", "[executor][chunks]") {
  const Batch inputs = batch(5), labels = batch(6);
  const Program program = cut(tangled(inputs, labels), 2);
  const StageProgram& stage = program.compiled().partition.stages[1];
  StageRuntime runtime(stage, Sgd{});
  runtime.load(initial_state(program.compiled().graph));
  std::vector<torch::Tensor> arguments;
  for (const StageInput& input : stage.inputs) {
    arguments.push_back(torch::randn(stage.at(input.value).sizes));
  }
  SavedStage saved;
  (void)runtime.forward(runtime.whole(), arguments, true, {}, saved);
  REQUIRE(saved.chunks.size() == stage.chunks.size());
  REQUIRE(stage.chunks.size() > 2);
  std::vector<std::weak_ptr<torch::autograd::Node>> first_graph;
  for (const torch::Tensor& output : saved.chunks.front().outputs) {
    if (output.grad_fn()) {
      first_graph.push_back(output.grad_fn());
    }
  }
  REQUIRE_FALSE(first_graph.empty());
  saved.chunks.front() = {};
  for (const auto& node : first_graph) {
    CHECK(node.expired());
  }
  SavedStage nothing;
  (void)runtime.forward(runtime.whole(), arguments, false, {}, nothing);
  CHECK(nothing.chunks.empty());
}

TEST_CASE("borders that a stage cannot have are refused by name", "[executor][chunks]") {
  const Batch inputs = batch(7), labels = batch(8);
  const auto refusal = [](const StageProgram& given, std::vector<std::size_t> borders) {
    StageProgram stage = given;
    try {
      cut_into_chunks(stage, borders);
    } catch (const Error& error) {
      CHECK(error.code() == Errc::CompilePartition);
      return error.message();
    }
    return std::string("none");
  };
  const StageProgram front = tangled(inputs, labels).compiled().partition.stages[0];
  CHECK_THAT(refusal(front, {0}), ContainsSubstring("a chunk from 0 to 0 has none"));
  CHECK_THAT(refusal(front, {3, 2}), ContainsSubstring("a chunk from 3 to 2 has none"));
  CHECK_THAT(refusal(front, {front.operator_count()}), ContainsSubstring("has none"));

  struct InPlace : torch::nn::Module {
    torch::nn::Linear layer = register_module("layer", torch::nn::Linear(6, 6));
    torch::Tensor forward(torch::Tensor x) {
      return stage("only", [&] {
        auto h = layer(x);
        auto part = h.view({-1});
        auto g = torch::tanh(h);
        part.mul_(2);
        return h + g;
      });
    }
  };
  InPlace module;
  const Program written = compile(
      module,
      {.inputs = inputs, .labels = labels, .loss = testing::mean_square, .microbatches = 1});
  const StageProgram& only = written.compiled().partition.stages[0];
  CHECK_THAT(refusal(only, {4}),
             ContainsSubstring("aten::mul_.Scalar writes %") &&
                 ContainsSubstring("another chunk of stage \"only\""));
  CHECK(refusal(only, {5}) == "none");  // after the write and all readers
}

}  // namespace
}  // namespace stagecraft
