/// Compares the predicted memory of ranks with the memory that LibTorch's allocator counted there.
#include <memory>
#include <string>
#include <vector>

#include <torch/torch.h>

#include "stagecraft/actors/profile/profile.h"
#include "stagecraft/bench/plans/judged.h"
#include "stagecraft/bench/plans/plans_subject.h"
#include "stagecraft/bench/plans/rank_bytes.h"
#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/module/markers.h"
#include "stagecraft/scheduler/builders/bidirectional/chimera.h"
#include "stagecraft/scheduler/builders/gpipe.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/builders/zero_bubble/zb_h1.h"
#include "stagecraft/scheduler/builders/zero_bubble/zb_v.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

constexpr int kRanks = 2;
constexpr double kMostUnder = 0.02;
constexpr double kMostOver = 0.1;

/// Returns costs and sizes of a step of the model's batch.
PlanRequest profiled(const bench::Subject& model) {
  const Program whole = model.compile(At{}, 1);
  PlanRequest request{
      .costs = profile(whole, model.inputs, model.labels, {.repeats = 1, .cache = ""}).costs,
      .devices = kRanks};
  request.batch = model.microbatches * request.costs.samples;
  return request;
}

/// Checks that predicted and counted bytes of the ranks agree.
void check_bytes(const bench::Subject& model,
                 const PlanRequest& request,
                 const Program& cut,
                 const Schedule& schedule,
                 double most_over = kMostOver) {
  const PlanProposal judged = bench::judged(request, cut, schedule);
  std::vector<double> predicted = judged.bytes;
  for (std::size_t r = 0; r < predicted.size(); ++r) {
    predicted[r] -= judged.early[r];  // depends on which rank is faster, and is counted apart
  }
  const std::vector<bench::RankBytes> counted =
      bench::count_bytes(cut, schedule, AdamW{}, model.inputs, model.labels);
  REQUIRE(counted.size() == predicted.size());
  for (std::size_t r = 0; r < counted.size(); ++r) {
    const auto peak = static_cast<double>(counted[r].peak);
    CAPTURE(model.name, r, schedule.rows().front().size(), predicted[r], peak, counted[r].state);
    CHECK(peak <= predicted[r] * (1 + kMostUnder));
    CHECK(predicted[r] <= peak * (1 + most_over));
    CHECK(counted[r].state > 0);
    CHECK(counted[r].state < counted[r].peak);
  }
}

TEST_CASE("ranks hold what is predicted, also between the halves of split backwards",
          "[profile][memory]") {
  const bench::Subject model = bench::subject_of_model(
      GENERATE("llama", "vit"), {"--dim", "64", "--heads", "2", "--ffn", "96", "--layers", "4"});
  const PlanRequest request = profiled(model);
  const Program cut = model.compile({}, kRanks);
  const Program halved = model.compile({}, 2 * kRanks);
  check_bytes(model, request, cut, one_f_one_b(cut.stage_graph(), model.microbatches));
  check_bytes(model, request, cut, gpipe(cut.stage_graph(), model.microbatches));
  check_bytes(model, request, cut, zb_h1(kRanks, model.microbatches));
  check_bytes(model, request, halved, zb_v(kRanks, model.microbatches));
}

TEST_CASE("ranks hold what is predicted of values that cross several stages", "[profile][memory]") {
  // Stages that make skips for later ones count them too.
  constexpr double kMostOverForSkips = 0.25;
  const bench::Subject model = bench::subject_of_model(
      "unet", {"--image", "16", "--width", "16", "--levels", "2", "--heads", "2"});
  const PlanRequest request = profiled(model);
  const Program cut = model.compile({}, kRanks);
  const auto check = [&](const Program& program, const Schedule& schedule) {
    check_bytes(model, request, program, schedule, kMostOverForSkips);
  };
  check(cut, one_f_one_b(cut.stage_graph(), model.microbatches));
  check(cut, gpipe(cut.stage_graph(), model.microbatches));
  check(cut, zb_h1(kRanks, model.microbatches));
  check(model.compile({}, 2 * kRanks), zb_v(kRanks, model.microbatches));
}

/// A large embedding for small batches, whose weight may also be the head's. Most of its memory is
/// held while gradients are summed.
struct Words : torch::nn::Module {
  static constexpr std::int64_t kWords = 4000, kWidth = 32;

  explicit Words(bool tied) {
    embed = register_module("embed", torch::nn::Embedding(kWords, kWidth));
    if (!tied) {
      head = register_module("head", torch::nn::Linear(kWidth, 8));
    }
  }
  torch::Tensor forward(const torch::Tensor& words) {
    const torch::Tensor read =
        stage("embed", [&] { return torch::tanh(embed->forward(words)).squeeze(1); });
    return stage("head", [&] {
      return head ? head->forward(read) : torch::matmul(read, embed->weight.t());
    });
  }

  torch::nn::Embedding embed{nullptr};
  torch::nn::Linear head{nullptr};
};

bench::Subject words(bool tied) {
  constexpr int kMicrobatches = 4;
  const torch::Tensor inputs = torch::randint(Words::kWords, {2 * kMicrobatches, 1}, torch::kLong);
  const torch::Tensor labels = inputs.squeeze(1).remainder(8);
  return {.name = tied ? "tied words" : "words",
          .own_cut = "even cut",
          .microbatches = kMicrobatches,
          .compile =
              [=](const std::optional<Cut>& cut, int) {
                Words model(tied);
                return compile(model,
                               {.inputs = {inputs},
                                .labels = {labels},
                                .loss =
                                    [](const torch::Tensor& output, const torch::Tensor& label) {
                                      return torch::nn::functional::cross_entropy(output, label);
                                    },
                                .microbatches = kMicrobatches,
                                .cut = cut.value_or(AtMarkers{})});
              },
          .inputs = {inputs},
          .labels = {labels}};
}

TEST_CASE("ranks hold what is predicted while they sum gradients over copies",
          "[profile][memory]") {
  const bench::Subject model =
      GENERATE(true, false)
          ? words(/*tied=*/false)
          : bench::subject_of_model(
                "vit", {"--dim", "64", "--heads", "2", "--ffn", "96", "--layers", "4"});
  check_bytes(
      model, profiled(model), model.compile({}, kRanks), chimera(kRanks, model.microbatches));
}

TEST_CASE("ranks hold what is predicted while they sum gradients over stages",
          "[profile][memory]") {
  const bench::Subject model = words(/*tied=*/true);
  const PlanRequest request = profiled(model);
  const Program cut = model.compile({}, kRanks);
  REQUIRE(cut.stage_graph().tied().size() == 1);
  check_bytes(model, request, cut, one_f_one_b(cut.stage_graph(), model.microbatches));
  check_bytes(model, request, cut, chimera(kRanks, model.microbatches));
}

}  // namespace
}  // namespace stagecraft
