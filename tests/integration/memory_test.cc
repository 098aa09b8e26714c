/// Tests the memory of ranks as a program sees it: counted and learned.
#include <torch/torch.h>

#include "stagecraft/stagecraft.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tests {
namespace {

constexpr std::int64_t kWidth = 128, kRows = 512;
constexpr int kParts = 4;

/// Uses one rank, so that the pace of other ranks does not decide when its memory is freed.
const char* const kOneRank =
    "@form list\n0F0 1F0 0F1 1F1 1B0 0B0 1B1 0B1 0F2 1F2 0F3 1F3 1B2 0B2 1B3 0B3\n";

/// Has activations of 256 KiB each, 64 pages.
struct TwoStagesImpl : torch::nn::Module {
  torch::nn::Linear a{register_module("a", torch::nn::Linear(kWidth, kWidth))};
  torch::nn::Linear b{register_module("b", torch::nn::Linear(kWidth, kWidth))};
  torch::nn::LayerNorm norm{
      register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({kWidth})))};
  torch::Tensor forward(torch::Tensor x) {
    x = stage("first", [&] { return torch::gelu(norm(a(x))); });
    return stage("second", [&] { return torch::gelu(norm(b(torch::silu(x)))); });
  }
};

TORCH_MODULE(TwoStages);

struct Setting {
  torch::Tensor x, y;
  TwoStages module;
  Program program;
  Cluster cluster = Cluster::local(1);
  Trainer trainer;

  Setting()
      : x((torch::manual_seed(3), torch::randn({kParts * kRows, kWidth}))),
        y(torch::randn({kParts * kRows, kWidth})),
        program(make_program()),
        trainer(cluster, program, Schedule::parse(kOneRank), AdamW{.lr = 1e-3}) {}

  [[nodiscard]] Program make_program() const {
    return compile(
        module,
        {.inputs = {x}, .labels = {y}, .loss = torch::nn::MSELoss(), .microbatches = kParts});
  }
};

TEST_CASE("behind its second step a rank asks the system for no tensor's memory",
          "[integration][memory]") {
  // The remaining faults are of small objects, which malloc holds, and of code that was paged out.
  constexpr std::int64_t kFewFaults = 64;
  Setting s;
  std::int64_t held = 0;
  for (int step = 0; step < 10; ++step) {
    const RankMemory memory = s.trainer.step({s.x}, {s.y}).get().ranks.at(0).memory;
    CAPTURE(step, memory.live, memory.cached, memory.peak);
    CHECK(memory.peak > 4 * kRows * kWidth * 4);
    CHECK(memory.peak <= memory.live + memory.cached);
    if (step >= 2) {
      CHECK(memory.page_faults < kFewFaults);
      CHECK(memory.live + memory.cached == held);
    }
    held = memory.live + memory.cached;
  }
}

}  // namespace
}  // namespace stagecraft::tests
