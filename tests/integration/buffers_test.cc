/// Tests buffers of any type in a model that is trained, saved and loaded.

#include <cstring>
#include <filesystem>

#include <torch/torch.h>

#include "stagecraft/actors/trainer/state/checkpoint.h"
#include "stagecraft/compiler/libtorch/same_bits.h"
#include "stagecraft/stagecraft.h"
#include "stagecraft/tests/integration/usual_trainer.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"

namespace stagecraft::tests {
namespace {

using namespace stagecraft::cells;

/// Two stages, of which the second reads a complex buffer.
struct Buffered : torch::nn::Module {
  torch::nn::Linear in{register_module("in", torch::nn::Linear(4, 4))};
  torch::nn::Linear out{register_module("out", torch::nn::Linear(4, 1))};
  torch::Tensor turn{register_buffer("turn", torch::polar(torch::ones({4}), torch::rand({4})))};

  torch::Tensor forward(torch::Tensor x) {
    const auto h = stage("first", [&] { return torch::tanh(in(x)); });
    return stage("second", [&] { return out(h * torch::abs(turn)); });
  }
};

torch::Tensor loss(const torch::Tensor& output, const torch::Tensor& label) {
  return torch::mse_loss(output, label);
}

struct BufferRun {
  explicit BufferRun(Buffered& module)
      : program(compile(
            module,
            {.inputs = {torch::ones({2, 4})}, .labels = {torch::ones({2, 1})}, .loss = loss})),
        trainer(cluster,
                program,
                Schedule{{F(0, 0), idle, idle, B(0, 0)}, {idle, F(1, 0), B(1, 0), idle}},
                AdamW{}) {}

  Cluster cluster = Cluster::local(2);
  Program program;
  Trainer trainer;
};

/// Returns whether tensors of the type can be copied. LibTorch can only hold tensors of some types
/// (UInt1, Float4_e2m1fn_x2).
bool can_be_copied(at::ScalarType type) {
  try {
    (void)at::empty({1}, at::TensorOptions(type)).clone();
    return true;
  } catch (const c10::Error&) {
    return false;
  }
}

}  // namespace

TEST_CASE(
    "a trainer saves and loads buffers of every type that can be copied, read by a stage or not",
    "[integration][checkpoint]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a.ckpt";
  Buffered module;
  int types = 0;
  for (int i = 0; i < static_cast<int>(at::ScalarType::Undefined); ++i) {
    const auto type = static_cast<at::ScalarType>(i);
    if (c10::isQIntType(type) || !can_be_copied(type)) {
      continue;
    }
    const at::Tensor buffer = at::empty({3}, at::TensorOptions(type));
    std::memset(buffer.mutable_data_ptr(), 1, buffer.nbytes());
    module.register_buffer(c10::toString(type), buffer);
    ++types;
  }
  BufferRun run(module);
  (void)run.trainer.step({torch::ones({2, 4})}, {torch::ones({2, 1})}).get();
  run.trainer.save(path);
  run.trainer.load(path);
  const Checkpoint saved = read_checkpoint(path);
  int found = 0;
  for (const auto& [name, buffer] : module.named_buffers().pairs()) {
    CAPTURE(name);
    for (const StateTensor& kept : saved.tensors) {
      if (kept.name == "buffer:" + name) {
        ++found;
        CHECK(stagecraft::same_bits(kept.tensor, buffer));
      }
    }
  }
  CHECK(types >= 20);
  CHECK(found == types + 1);
}

}  // namespace stagecraft::tests
