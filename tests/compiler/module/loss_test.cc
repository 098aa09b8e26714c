/// Tests the forms that a loss may have, and the tensors that it is given.
#include "stagecraft/compiler/module/loss.h"

#include <memory>
#include <stdexcept>

#include <torch/torch.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/modules.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using testing::mean_square;

torch::Tensor rows() {
  torch::manual_seed(5);
  return torch::randn({4, 3});
}

/// Compiles a linear layer with this loss.
void train_with(Loss loss, Batch labels = {rows()}) {
  torch::nn::Linear linear(3, 3);
  const Program program = compile(linear,
                                  {.inputs = {rows()},
                                   .labels = std::move(labels),
                                   .loss = std::move(loss),
                                   .microbatches = 2});
  CHECK(program.compiled().graph.nodes.size() > 1);
}

torch::Tensor free_loss(const torch::Tensor& output, torch::Tensor label) {
  return (output - label).abs().sum();
}
torch::Tensor free_loss_noexcept(torch::Tensor& output, torch::Tensor& label) noexcept {
  return (output - label).sum();
}

TEST_CASE("a loss may be a function, a lambda of any kind, or any object with ()",
          "[compiler][loss]") {
  train_with(free_loss);
  train_with(&free_loss);
  train_with(free_loss_noexcept);
  train_with([](torch::Tensor o, torch::Tensor l) { return (o - l).sum(); });
  train_with([](const torch::Tensor& o, const torch::Tensor& l) { return (o - l).sum(); });
  train_with([](auto o, const auto& l) { return (o - l).sum(); });
  train_with([](auto... all) { return (all + ...).sum(); });
  train_with(std::function<torch::Tensor(torch::Tensor, torch::Tensor)>(free_loss));
  train_with([calls = 0](torch::Tensor o, torch::Tensor l) mutable {
    ++calls;
    return (o - l).sum();
  });
  train_with([scale = std::make_unique<double>(2.0)](torch::Tensor o, torch::Tensor l) {
    return (o - l).sum() * *scale;
  });
  train_with(torch::nn::MSELoss());
}

TEST_CASE("a loss module may come as itself, in a holder, by pointer or in AnyModule",
          "[compiler][loss]") {
  train_with(torch::nn::MSELoss());
  train_with(torch::nn::MSELossImpl());
  train_with(std::make_shared<torch::nn::MSELossImpl>());
  train_with(torch::nn::AnyModule(torch::nn::MSELoss()));
  train_with(torch::nn::L1Loss(torch::nn::L1LossOptions(torch::kSum)));
  train_with(torch::nn::SmoothL1Loss());
  train_with(torch::nn::HuberLoss());
  train_with(torch::nn::KLDivLoss());
  train_with(torch::nn::BCEWithLogitsLoss());
  train_with(torch::nn::SoftMarginLoss());
  train_with(torch::nn::CrossEntropyLoss(), {torch::tensor({0, 1, 2, 1})});
  train_with(
      torch::nn::CrossEntropyLoss(torch::nn::CrossEntropyLossOptions().weight(torch::rand({3}))),
      {torch::tensor({0, 1, 2, 1})});
  train_with(torch::nn::MultiMarginLoss(), {torch::tensor({0, 1, 2, 1})});
}

TEST_CASE("a functional loss has its options at their defaults", "[compiler][loss]") {
  namespace F = torch::nn::functional;
  train_with(F::mse_loss);
  train_with(F::huber_loss);
  train_with(F::binary_cross_entropy_with_logits);
  train_with(F::cross_entropy, {torch::tensor({0, 1, 2, 1})});
  const Loss loss(F::mse_loss);
  const auto x = rows();
  CHECK(torch::equal(loss.call()({x}, {x + 2}), torch::mse_loss(x, x + 2)));
}

TEST_CASE("a loss of namespace torch has its arguments at their defaults", "[compiler][loss]") {
  torch::manual_seed(4);
  const torch::Tensor x = torch::randn({6, 3}), y = torch::rand({6, 3});
  const torch::Tensor classes = torch::randint(0, 3, {6});
  const torch::Tensor chance = torch::sigmoid(x), logs = torch::log_softmax(x, 1);
  const auto of = [](const Loss& loss, const torch::Tensor& output, const torch::Tensor& label) {
    return loss.call()({output}, {label});
  };
  CHECK(torch::equal(of(torch::mse_loss, x, y), torch::mse_loss(x, y)));
  CHECK(torch::equal(of(torch::l1_loss, x, y), torch::l1_loss(x, y)));
  CHECK(torch::equal(of(torch::soft_margin_loss, x, y), torch::soft_margin_loss(x, y)));
  CHECK(torch::equal(of(torch::smooth_l1_loss, x, y), torch::smooth_l1_loss(x, y)));
  CHECK(torch::equal(of(torch::huber_loss, x, y), torch::huber_loss(x, y)));
  CHECK(torch::equal(of(torch::kl_div, logs, y), torch::kl_div(logs, y)));
  CHECK(torch::equal(of(torch::cross_entropy_loss, x, classes),
                     torch::cross_entropy_loss(x, classes)));
  CHECK(torch::equal(of(torch::nll_loss, logs, classes), torch::nll_loss(logs, classes)));
  CHECK(torch::equal(of(torch::binary_cross_entropy, chance, y),
                     torch::binary_cross_entropy(chance, y)));
  CHECK(torch::equal(of(torch::binary_cross_entropy_with_logits, x, y),
                     torch::binary_cross_entropy_with_logits(x, y)));
  CHECK(torch::equal(of(torch::hinge_embedding_loss, x, y.sign()),
                     torch::hinge_embedding_loss(x, y.sign())));
  CHECK(
      torch::equal(of(torch::multi_margin_loss, x, classes), torch::multi_margin_loss(x, classes)));
  CHECK(torch::equal(of(torch::multilabel_margin_loss, x, classes.view({2, 3}).repeat({3, 1})),
                     torch::multilabel_margin_loss(x, classes.view({2, 3}).repeat({3, 1}))));
  CHECK(torch::equal(of(torch::nn::functional::smooth_l1_loss, x, y), torch::smooth_l1_loss(x, y)));
  train_with(torch::mse_loss);
}

torch::Tensor of_the_user(const torch::Tensor& output,
                          const torch::Tensor& label,
                          std::int64_t power) {
  return (output - label).pow(power).mean();
}

TEST_CASE("a function with other parameters is refused: its defaults are unknown",
          "[compiler][loss][bad-input]") {
  CHECK_THAT(refusal([] { train_with(of_the_user); }), ContainsSubstring("wrap it in a lambda"));
}

TEST_CASE("a loss may read the output alone", "[compiler][loss]") {
  train_with([](torch::Tensor output) { return output.square().mean(); }, {});
  train_with(
      [](const std::vector<torch::Tensor>& outputs) { return outputs.at(0).square().mean(); }, {});
}

TEST_CASE("a loss of lists gets all outputs and all labels", "[compiler][loss]") {
  const auto x = rows();
  const Loss loss(
      [](const std::vector<torch::Tensor>& outputs, const std::vector<torch::Tensor>& labels) {
        return outputs.at(1).sum() + labels.at(2).sum();
      });
  CHECK(torch::equal(loss.call()({x, x + 1}, {x, x, x * 3}), (x + 1).sum() + (x * 3).sum()));
  const Loss views([](at::TensorList outputs, at::TensorList labels) {
    return outputs[1].sum() + labels[0].sum();
  });
  CHECK(torch::equal(views.call()({x, x + 1}, {x}), (x + 1).sum() + x.sum()));
}

TEST_CASE("a loss of tensors gets the outputs, then the labels", "[compiler][loss]") {
  const auto x = rows();
  const auto y = rows() + 1;
  const Loss triplet((torch::nn::TripletMarginLoss()));
  CHECK(torch::equal(triplet.call()({x, y, -x}, {}), torch::triplet_margin_loss(x, y, -x)));
  const auto sign = torch::tensor({1, -1, 1, 1});
  const Loss cosine((torch::nn::CosineEmbeddingLoss()));
  CHECK(torch::equal(cosine.call()({x, y}, {sign}), torch::cosine_embedding_loss(x, y, sign)));
}

TEST_CASE("a loss that takes less than all outputs gets the first", "[compiler][loss]") {
  const auto x = rows();
  const Loss loss(mean_square);
  CHECK(torch::equal(loss.call()({x + 1, x}, {x}), mean_square(x + 1, x)));
}

TEST_CASE(
    "a loss that could be given the first output or all is refused with the form that chooses",
    "[compiler][loss]") {
  const auto x = rows();
  const Loss loss([](auto... all) { return (all + ...).sum(); });
  CHECK_THAT(refusal([&] {
               (void)loss.call()({x, x}, {x});
             }),
             ContainsSubstring("all 2 outputs") && ContainsSubstring("choose with a loss"));
}

TEST_CASE("missing labels and too many labels are refused before anything is indexed",
          "[compiler][loss]") {
  CHECK_THAT(refusal([] { train_with(mean_square, {}); }),
             ContainsSubstring("takes 2 tensors") && ContainsSubstring("labels has 0"));
  CHECK_THAT(refusal([] {
               train_with(mean_square, {rows(), rows()});
             }),
             ContainsSubstring("labels has 2"));
  CHECK_THAT(refusal([] { train_with([](torch::Tensor o) { return o.sum(); }); }),
             ContainsSubstring("takes 1 tensor:") && ContainsSubstring("labels has 1"));
  CHECK_THAT(
      refusal([] {
        train_with([](const Tensors& o, const Tensors& l) { return (o.at(0) - l.at(1)).sum(); });
      }),
      ContainsSubstring("does not exist") && ContainsSubstring("labels has 1"));
}

TEST_CASE("an exception that a loss of lists throws keeps its message", "[compiler][loss]") {
  CHECK_THAT(refusal([] {
               train_with([](const Tensors& outputs, const Tensors&) -> torch::Tensor {
                 if (outputs.at(0).size(1) == 3) {
                   throw std::out_of_range("no weight for class 7");
                 }
                 return outputs[0].sum();
               });
             }),
             ContainsSubstring("(no weight for class 7)") && ContainsSubstring("perhaps"));
}

TEST_CASE("a loss that is not there is refused", "[compiler][loss]") {
  using Function = std::function<torch::Tensor(torch::Tensor, torch::Tensor)>;
  CHECK_THAT(refusal([] { train_with(Function()); }), ContainsSubstring("loss is missing"));
  CHECK_THAT(refusal([] { train_with(torch::nn::MSELoss(nullptr)); }),
             ContainsSubstring("loss is missing"));
  CHECK_THAT(refusal([] { train_with(static_cast<decltype(&free_loss)>(nullptr)); }),
             ContainsSubstring("loss is missing"));
  Loss loss(mean_square);
  const Loss moved = std::move(loss);
  CHECK_THAT(refusal([&] { train_with(loss); }),
             ContainsSubstring("loss is missing"));  // NOLINT(bugprone-use-after-move)
  CHECK(moved.call());
}

}  // namespace
}  // namespace stagecraft
