/// The memory of ranks as a program meets it: counted, learned, kept by the user.
#include <optional>

#include <torch/torch.h>

#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/stagecraft.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tests {
namespace {

constexpr std::int64_t kWidth = 128, kRows = 512;
constexpr int kParts = 4;

/// Activations of 256 KiB, which no allocator of small pieces serves.
struct TwoStages : torch::nn::Module {
  torch::nn::Linear a{register_module("a", torch::nn::Linear(kWidth, kWidth))};
  torch::nn::Linear b{register_module("b", torch::nn::Linear(kWidth, kWidth))};
  torch::nn::LayerNorm norm{
      register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({kWidth})))};
  torch::Tensor forward(torch::Tensor x) {
    x = stage("first", [&] { return torch::gelu(norm(a(x))); });
    return stage("second", [&] { return torch::gelu(norm(b(torch::silu(x)))); });
  }
};

struct Setting {
  torch::Tensor x, y;
  Program program;
  Cluster cluster = Cluster::local(2);
  Trainer trainer;

  Setting()
      : x((torch::manual_seed(3), torch::randn({kParts * kRows, kWidth}))),
        y(torch::randn({kParts * kRows, kWidth})),
        program(make_program()),
        trainer(cluster, program, one_f_one_b(program.stage_graph(), kParts), AdamW{.lr = 1e-3}) {}

  [[nodiscard]] Program make_program() const {
    TwoStages module;
    return compile(
        module,
        {.inputs = {x}, .labels = {y}, .loss = torch::nn::MSELoss(), .microbatches = kParts});
  }
};

TEST_CASE("behind the second step no rank meets a page that it has not had before",
          "[integration][memory]") {
  Setting s;
  for (int step = 0; step < 10; ++step) {
    const StepResult result = s.trainer.step({s.x}, {s.y}).get();
    for (std::size_t rank = 0; rank < result.ranks.size(); ++rank) {
      const RankMemory& memory = result.ranks[rank].memory;
      CAPTURE(step, rank, memory.live, memory.cached, memory.peak);
      CHECK(memory.peak > kRows * kWidth * 4);
      CHECK(memory.peak <= memory.live + memory.cached);
      if (step >= 2) {
        CHECK(memory.page_faults == 0);
      }
    }
  }
}

TEST_CASE("outputs that a program keeps outlive the trainer whose memory they are in",
          "[integration][memory]") {
  std::optional<Setting> s(std::in_place);
  const std::vector<torch::Tensor> kept = s->trainer.predict({s->x});
  const std::vector<torch::Tensor> again = s->trainer.predict({s->x});
  torch::Tensor before = kept.at(0).clone();
  (void)s->trainer.step({s->x}, {s->y}).get();
  s.reset();
  CHECK(torch::equal(kept[0], before));
  CHECK(torch::equal(again.at(0), before));
}

}  // namespace
}  // namespace stagecraft::tests
