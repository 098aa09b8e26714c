#include "stagecraft/actors/executor/run/accumulation.h"

#include <torch/torch.h>

#include "stagecraft/tests/actors/executor/run/one_rank.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using testing::OneRank;

/// Counts its forwards in a buffer, and has one that it never writes.
struct Counting : torch::nn::Module {
  torch::nn::Linear layer{register_module("layer", torch::nn::Linear(3, 3))};
  torch::Tensor seen = register_buffer("seen", torch::zeros({1}));
  torch::Tensor scale = register_buffer("scale", torch::ones({1}));
  torch::Tensor forward(torch::Tensor x) {
    return stage("all", [&] {
      seen.add_(1.0);
      return layer(x) * scale;
    });
  }
};

struct CountingRank {
  CountingRank() : rank(program(), Schedule::parse("@form list\n0F0 0F1 0B0 0B1\n")) {}

  static Program program() {
    Counting module;
    const Batch batch{torch::randn({4, 3})};
    return compile(
        module,
        {.inputs = batch, .labels = batch, .loss = testing::mean_square, .microbatches = 2});
  }

  [[nodiscard]] Snapshot snapshot() { return Snapshot(rank.programs.trained()); }
  [[nodiscard]] const torch::Tensor& seen() { return rank.programs.trained()[0].state.buffers[0]; }
  [[nodiscard]] const torch::Tensor& scale() { return rank.programs.trained()[0].state.buffers[1]; }
  /// Does what a batch does to the buffers, and keeps it.
  void train(bool updates) {
    const Snapshot before = snapshot();
    seen().add_(2.0);
    accumulation.keep(before, updates);
  }

  OneRank rank;
  Accumulation accumulation;
};

TEST_CASE("AC-1: dropped batches leave the buffers of the last update", "[executor][accumulate]") {
  CountingRank f;
  f.train(true);
  CHECK(f.accumulation.batches() == 0);
  f.train(false);
  f.train(false);
  CHECK(f.accumulation.batches() == 2);
  CHECK(f.seen().item<float>() == 6.0F);
  CHECK(f.accumulation.committed(f.seen()).item<float>() == 2.0F);
  f.accumulation.drop();
  CHECK(f.seen().item<float>() == 2.0F);
  CHECK(f.accumulation.batches() == 0);
  f.accumulation.drop();  // nothing is left to drop
  CHECK(f.seen().item<float>() == 2.0F);
}

TEST_CASE("AC-1: the last batch of an update commits the buffers of all its batches",
          "[executor][accumulate]") {
  CountingRank f;
  f.train(false);
  f.train(true);
  CHECK(f.accumulation.batches() == 0);
  CHECK(f.accumulation.committed(f.seen()).is_same(f.seen()));
  f.accumulation.drop();
  CHECK(f.seen().item<float>() == 4.0F);
}

TEST_CASE("a tensor that no batch writes is its own committed state", "[executor][accumulate]") {
  CountingRank f;
  f.train(false);
  CHECK(f.accumulation.committed(f.scale()).is_same(f.scale()));
  const torch::Tensor& weight = f.rank.programs.trained()[0].buckets.parameters()[0];
  CHECK(f.accumulation.committed(weight).is_same(weight));
}

}  // namespace
}  // namespace stagecraft
