/// Tests a trainer's state in a module, and in files that LibTorch and PyTorch share with it.

#include <filesystem>
#include <map>

#include <torch/torch.h>

#include "stagecraft/stagecraft.h"
#include "stagecraft/tests/integration/models.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

/// Has all that a file must carry: a tie, a submodule without tensors, a module that lacks one. The
/// names are those of tests/data/modules/make_module.py.
struct NetImpl : torch::nn::Module {
  explicit NetImpl(std::int64_t width = 4)
      : embed(register_module("embed", torch::nn::Embedding(6, width))),
        out(register_parameter("out", embed->weight)),
        blocks(register_module(
            "blocks",
            torch::nn::Sequential(
                torch::nn::Linear(width, 4), torch::nn::ReLU(), torch::nn::BatchNorm1d(4)))),
        plain(register_module("plain",
                              torch::nn::Linear(torch::nn::LinearOptions(4, width).bias(false)))),
        norm(register_module(
            "norm", torch::nn::BatchNorm1d(torch::nn::BatchNormOptions(width).affine(false)))) {}

  torch::Tensor forward(torch::Tensor tokens) {
    auto x = stage("first", [&] { return blocks->forward(embed->forward(tokens)); });
    return stage("second", [&] { return torch::matmul(norm(plain(x)), embed->weight.t()); });
  }

  torch::nn::Embedding embed;
  torch::Tensor out;
  torch::nn::Sequential blocks;
  torch::nn::Linear plain;
  torch::nn::BatchNorm1d norm;
};
TORCH_MODULE(Net);

torch::Tensor tokens() {
  return torch::arange(8).remainder(6);
}

/// Holds a trainer of a Net after some steps.
struct Trained {
  explicit Trained(int steps = 2) {
    for (int i = 0; i < steps; ++i) {
      (void)trainer.step({tokens()}, {tokens()}).get();
    }
  }

  Net net;
  Program program =
      compile(net,
              {.inputs = {tokens()},
               .labels = {tokens()},
               .loss = [](torch::Tensor x,
                          torch::Tensor y) { return torch::nn::functional::cross_entropy(x, y); },
               .microbatches = 2});
  Cluster cluster = Cluster::local(2);
  Trainer trainer{cluster, program, gpipe(program.stage_graph(), 2), AdamW{.lr = 0.1}};
};

StateDict state_of(Net& net) {
  StateDict state;
  for (const auto& item : net->named_parameters()) {
    state.emplace_back(item.key(), item.value().detach());
  }
  for (const auto& item : net->named_buffers()) {
    state.emplace_back(item.key(), item.value());
  }
  return state;
}

StateDict copy_of(const StateDict& state) {
  StateDict copy;
  for (const auto& [name, tensor] : state) {
    copy.emplace_back(name, tensor.clone());
  }
  return copy;
}

TEST_CASE("state_dict has parameters, then buffers, under every name of the module",
          "[integration][state]") {
  Trained t(0);
  const StateDict state = t.trainer.state_dict();
  CHECK(same_bits(state, state_of(t.net)));
  const std::map<std::string, at::Tensor> by_name(state.begin(), state.end());
  CHECK(by_name.at("out").is_same(by_name.at("embed.weight")));
  CHECK(by_name.contains("norm.num_batches_tracked"));
  CHECK(t.trainer.module_state().buffers.size() == t.net->named_buffers().size());
}

TEST_CASE("copy_to writes what was trained into a module and leaves its tensors in their places",
          "[integration][state]") {
  Trained t;
  const StateDict trained = t.trainer.state_dict();
  Net other;
  CHECK_FALSE(same_bits(state_of(other), trained));
  const void* weight = other->plain->weight.const_data_ptr();
  torch::optim::SGD optimizer(other->parameters(), 0.1);
  SECTION("given as a holder") {
    t.trainer.copy_to(other);
  }
  SECTION("given as itself") {
    t.trainer.copy_to(*other);
  }
  SECTION("given as a pointer") {
    t.trainer.copy_to(other.ptr());
  }
  SECTION("given as the module that was compiled") {
    t.trainer.copy_to(t.net);
    other = t.net;
    weight = other->plain->weight.const_data_ptr();
  }
  CHECK(same_bits(state_of(other), trained));
  CHECK(other->plain->weight.const_data_ptr() == weight);
  CHECK(other->plain->weight.requires_grad());
  CHECK(other->out.is_same(other->embed->weight));
  other->eval();
  CHECK(other->forward(tokens()).isfinite().all().item<bool>());
}

TEST_CASE("a module that does not fit is told all that differs, and stays as it was",
          "[integration][state]") {
  Trained t;
  Net narrow(3);
  const StateDict before = copy_of(state_of(narrow));
  const std::string told = refusal([&] { t.trainer.copy_to(narrow); }, Errc::UsageFile);
  CHECK_THAT(told,
             ContainsSubstring("the trainer's state") &&
                 ContainsSubstring("plain.weight: expected float32 [3, 4], found float32 [4, 4]") &&
                 ContainsSubstring("norm.running_mean: expected float32 [3], found float32 [4]"));
  CHECK(same_bits(state_of(narrow), before));
  Net longer;
  longer->register_parameter("more", torch::ones(2));
  longer->register_buffer("count", torch::ones(1));
  CHECK_THAT(refusal([&] { t.trainer.copy_to(longer); }, Errc::UsageFile),
             ContainsSubstring("more: missing") && ContainsSubstring("count: missing"));
  CHECK_THAT(refusal([&] { t.trainer.copy_to(torch::nn::Linear(2, 2)); }, Errc::UsageFile),
             ContainsSubstring("embed.weight: the model has none of this name"));
  CHECK_THAT(refusal([&] { t.trainer.copy_to(Net(nullptr)); }),
             ContainsSubstring("empty module holder"));
}

TEST_CASE("what save_module writes LibTorch's torch::load reads, and the other way round",
          "[integration][state]") {
  Trained t;
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/module.pt";
  const StateDict trained = t.trainer.state_dict();
  t.trainer.save_module(path);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
  Net read;
  torch::load(read, path);
  CHECK(same_bits(state_of(read), trained));

  Net theirs;
  for (auto& parameter : theirs->parameters()) {
    parameter.detach().fill_(0.25);
  }
  torch::save(theirs, path);
  t.trainer.load_module(path);
  CHECK(same_bits(t.trainer.state_dict(), state_of(theirs)));
  CHECK(t.trainer.steps() == 2);
  (void)t.trainer.step({tokens()}, {tokens()}).get();
  CHECK_FALSE(same_bits(t.trainer.state_dict(), state_of(theirs)));

  load_module(path, read);
  CHECK(same_bits(state_of(read), state_of(theirs)));
  CHECK(read->out.is_same(read->embed->weight));
  save_module(path, read);
  Net again;
  torch::load(again, path);
  CHECK(same_bits(state_of(again), state_of(theirs)));
}

TEST_CASE("a module's file that PyTorch wrote is read", "[integration][state]") {
  const std::string path = std::string(STAGECRAFT_SOURCE_DIR) + "/tests/data/modules/module.pt";
  const auto filled = [](const at::Tensor& like, double first) {
    return (torch::arange(like.numel(), torch::kDouble) / 8 + first)
        .view(like.sizes())
        .to(like.scalar_type());
  };
  const std::map<std::string, double> first{{"out", 1},
                                            {"embed.weight", 1},
                                            {"blocks.0.weight", 2},
                                            {"blocks.0.bias", 3},
                                            {"blocks.2.weight", 4},
                                            {"blocks.2.bias", 5},
                                            {"plain.weight", 6},
                                            {"blocks.2.running_mean", 10},
                                            {"blocks.2.running_var", 20},
                                            {"blocks.2.num_batches_tracked", 30},
                                            {"norm.running_mean", 40},
                                            {"norm.running_var", 50},
                                            {"norm.num_batches_tracked", 60}};
  Net net;
  load_module(path, net);
  Trained t(1);
  t.trainer.load_module(path);
  for (const StateDict& state : {state_of(net), t.trainer.state_dict()}) {
    CHECK(state.size() == first.size());
    for (const auto& [name, tensor] : state) {
      CAPTURE(name);
      CHECK(torch::equal(tensor, filled(tensor, first.at(name))));
    }
  }
}

TEST_CASE("a file or a state that does not fit changes nothing", "[integration][state]") {
  Trained t;
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/module.pt";
  const StateDict before = t.trainer.state_dict();
  const auto refused = [&] {
    return refusal([&] { t.trainer.load_module(path); }, Errc::UsageFile);
  };
  CHECK_THAT(refused(), ContainsSubstring("no regular file"));
  t.trainer.save_module(path);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  CHECK_THAT(refused(), ContainsSubstring("is no file of a module"));
  t.trainer.save(path);
  CHECK_THAT(refused(), ContainsSubstring("is no file of a module"));
  torch::nn::Linear other(2, 2);
  torch::save(other, path);
  CHECK_THAT(refused(),
             ContainsSubstring("out: missing") &&
                 ContainsSubstring("bias: the model has none of this name"));
  StateDict untied = copy_of(before);
  untied[0].second.add_(1.0);
  CHECK_THAT(refusal([&] { t.trainer.load_state_dict(untied); }, Errc::UsageFile),
             ContainsSubstring("but both are one tensor in the model"));
  CHECK_THAT(refusal([&] { t.trainer.save_module(folder.path() + "/no/such/module.pt"); },
                     Errc::UsageFile),
             ContainsSubstring("/no/such/module.pt"));
  CHECK(same_bits(t.trainer.state_dict(), before));
}

}  // namespace
}  // namespace stagecraft::tests
