/// Tests LibTorch's own modules. If compile accepts one, a replay gives its values and gradients on
/// a microbatch of other values, bit by bit.
#include <torch/torch.h>

#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/modules.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using testing::mean_square;

constexpr int kLength = 5, kBatch = 4, kWidth = 8, kHeads = 2;

Program compile_sequence(torch::nn::Module& module,
                         const std::function<torch::Tensor(torch::Tensor)>& forward) {
  Workload workload;
  workload.forward = [forward](const Tensors& x) { return Tensors{forward(x[0])}; };
  workload.loss = [](const Tensors& o, const Tensors& y) { return mean_square(o[0], y[0]); };
  for (const auto& p : module.named_parameters()) {
    workload.parameters.push_back({p.key(), p.value()});
  }
  const auto x = torch::randn({kBatch, kLength, kWidth});
  return internal::compile_workload(
      workload, {.inputs = {x}, .labels = {torch::randn_like(x)}, .loss = {}, .microbatches = 2});
}

torch::Tensor by_position(const torch::Tensor& x) {
  return x.transpose(0, 1);
}

TEST_CASE("MultiheadAttention is taken, on itself and on others", "[compiler][library]") {
  torch::manual_seed(1);
  torch::nn::MultiheadAttention attention(
      torch::nn::MultiheadAttentionOptions(kWidth, kHeads).dropout(0.1));
  const Program on_itself = compile_sequence(*attention, [&](torch::Tensor x) {
    const auto s = by_position(x);
    return by_position(std::get<0>(stage("attention", [&] { return attention(s, s, s); })));
  });
  CHECK(on_itself.stage_graph().size() == 1);
  const Program on_others = compile_sequence(*attention, [&](torch::Tensor x) {
    const auto s = by_position(x);
    const auto memory = torch::tanh(s);
    return by_position(std::get<0>(attention(s, memory, memory)));
  });
  CHECK_THAT(on_others.graph_text(), ContainsSubstring("false = aten::equal"));
}

TEST_CASE("TransformerEncoder and its layer are taken", "[compiler][library]") {
  torch::manual_seed(2);
  torch::nn::TransformerEncoderLayer layer(
      torch::nn::TransformerEncoderLayerOptions(kWidth, kHeads).dim_feedforward(16));
  (void)compile_sequence(*layer,
                         [&](torch::Tensor x) { return by_position(layer(by_position(x))); });
  torch::nn::TransformerEncoder encoder(torch::nn::TransformerEncoderOptions(
      torch::nn::TransformerEncoderLayerOptions(kWidth, kHeads).dim_feedforward(16), 2));
  const auto mask = torch::nn::TransformerImpl::generate_square_subsequent_mask(kLength);
  (void)compile_sequence(
      *encoder, [&](torch::Tensor x) { return by_position(encoder(by_position(x), mask)); });
}

TEST_CASE("a whole Transformer compiles", "[compiler][library]") {
  torch::manual_seed(3);
  torch::nn::Transformer transformer(torch::nn::TransformerOptions(kWidth, kHeads)
                                         .num_encoder_layers(1)
                                         .num_decoder_layers(1)
                                         .dim_feedforward(16));
  (void)compile_sequence(*transformer, [&](torch::Tensor x) {
    return by_position(transformer(by_position(x), torch::sin(by_position(x))));
  });
}

TEST_CASE("one_hot is taken with a number of classes, and refused without", "[compiler][library]") {
  struct Classes : torch::nn::Module {
    torch::nn::Linear table{register_module("table", torch::nn::Linear(6, 3))};
    int classes = 6;
    torch::Tensor forward(torch::Tensor x) {
      return table(torch::one_hot(x, classes).to(torch::kFloat));
    }
  } module;
  const auto x = torch::arange(6).repeat({2}).narrow(0, 0, 12);
  const auto y = torch::randn({12, 3});
  const CompileOptions options{
      .inputs = {x}, .labels = {y}, .loss = mean_square, .microbatches = 2};
  CHECK(compile(module, options).stage_graph().size() == 1);
  module.classes = -1;
  CHECK_THROWS_WITH((void)compile(module, options), ContainsSubstring("aten::one_hot"));
}

TEST_CASE("recurrent, convolutional and normalizing modules are taken", "[compiler][library]") {
  torch::manual_seed(4);
  torch::nn::LSTM lstm(torch::nn::LSTMOptions(kWidth, kWidth).num_layers(2));
  (void)compile_sequence(
      *lstm, [&](torch::Tensor x) { return by_position(std::get<0>(lstm(by_position(x)))); });
  torch::nn::GRU gru(torch::nn::GRUOptions(kWidth, kWidth).batch_first(true));
  (void)compile_sequence(*gru, [&](torch::Tensor x) { return std::get<0>(gru(x)); });
  torch::nn::Conv1d convolution(
      torch::nn::Conv1dOptions(kLength, kLength, 3).padding(1).padding_mode(torch::kCircular));
  (void)compile_sequence(*convolution, [&](torch::Tensor x) { return convolution(x); });
  torch::nn::Sequential several(torch::nn::LayerNorm(torch::nn::LayerNormOptions({kWidth})),
                                torch::nn::GELU(),
                                torch::nn::Dropout(0.2),
                                torch::nn::Linear(kWidth, kWidth),
                                torch::nn::PReLU());
  (void)compile_sequence(*several, [&](torch::Tensor x) { return several->forward(x); });
}

}  // namespace
}  // namespace stagecraft
