#include "stagecraft/actors/executor/commit/replica_buffers.h"

#include <chrono>
#include <mutex>

#include <torch/torch.h>

#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/tests/actors/executor/commit/ranks_together.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/modules.h"

namespace stagecraft {
namespace {

struct Normalized : torch::nn::Module {
  torch::nn::BatchNorm1d norm{register_module("norm", torch::nn::BatchNorm1d(4))};
  torch::Tensor scale = register_buffer("scale", torch::ones({4}));
  torch::Tensor forward(torch::Tensor x) {
    return stage("all", [&] { return norm(x) * scale; });
  }
};

TEST_CASE("all copies of a stage take the buffers that the first copy has written",
          "[executor][commit]") {
  Normalized module;
  const Batch batch{torch::randn({4, 4})};
  const Program program = compile(
      module, {.inputs = batch, .labels = batch, .loss = testing::mean_square, .microbatches = 2});
  const StageProgram& stage = program.compiled().partition.stages[0];
  // The first copy is on rank 1, and rank 0 has two others.
  std::mutex mutex;
  std::vector<std::pair<double, double>> expected_and_found;
  testing::on_ranks(2, [&](Rank rank, Collective& collective) {
    std::vector<StageProgram> copies(rank == Rank(0) ? 2 : 1, stage);
    std::vector<StageRuntime> runtimes;
    for (std::size_t c = 0; c < copies.size(); ++c) {
      copies[c].replica = rank == Rank(1) ? 0 : static_cast<int>(c) + 1;
    }
    for (const StageProgram& copy : copies) {
      runtimes.emplace_back(copy, Sgd{});
      for (torch::Tensor& buffer : runtimes.back().state.buffers) {
        buffer.fill_(10.0 + copy.replica);
      }
    }
    std::vector<const StageRuntime*> mine;
    for (const StageRuntime& runtime : runtimes) {
      mine.push_back(&runtime);
    }
    take_buffers_of_first(
        collective, {.ranks = {Rank(0), Rank(1)}, .id = 1}, mine, {}, testing::in_a_minute());
    const std::scoped_lock lock(mutex);
    for (const StageRuntime& runtime : runtimes) {
      for (std::size_t b = 0; b < runtime.state.buffers.size(); ++b) {
        const double expected =
            runtime.program->buffers[b].written ? 10.0 : 10.0 + runtime.program->replica;
        expected_and_found.emplace_back(expected,
                                        runtime.state.buffers[b].flatten()[0].item<double>());
      }
    }
  });
  CHECK(expected_and_found.size() == 3 * 4);  // mean, variance, count and scale of each copy
  for (const auto& [expected, found] : expected_and_found) {
    CHECK(found == expected);
  }
}

TEST_CASE("copies of a stage that writes no buffer exchange nothing", "[executor][commit]") {
  testing::Chain module(1);
  const Batch batch{torch::randn({4, 8})};
  const Program program = compile(
      module, {.inputs = batch, .labels = batch, .loss = testing::mean_square, .microbatches = 2});
  const StageRuntime runtime(program.compiled().partition.stages[0], Sgd{});
  // Rank 1 is not there: a wait for it would end with an error.
  CHECK_NOTHROW(testing::on_ranks(1, [&](Rank, Collective& collective) {
    take_buffers_of_first(collective,
                          {.ranks = {Rank(0), Rank(1)}, .id = 1},
                          {&runtime},
                          {},
                          std::chrono::steady_clock::now());
  }));
}

}  // namespace
}  // namespace stagecraft
