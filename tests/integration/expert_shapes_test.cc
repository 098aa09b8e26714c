/// Tests experts that ranks divide on microbatches of other sizes and weights: they train like
/// those of one process.
#include <array>
#include <cstdint>
#include <memory>
#include <utility>

#include <torch/torch.h>

#include "stagecraft/compiler/native/count.h"
#include "stagecraft/scheduler/builders/gpipe.h"
#include "stagecraft/tests/integration/divided_experts.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft::tests::experts {
namespace {

using Catch::Matchers::ContainsSubstring;

/// Returns a batch of so many rows.
Data rows_of(std::int64_t rows, std::int64_t step) {
  const at::Tensor tokens = (torch::arange(rows) * 7 + step * 5 + 3).remainder(16);
  return {.inputs = {tokens}, .labels = {tokens.remainder(3)}};
}

/// Batches whose microbatches have 4, 3, 3, 3 rows, 4, 4, 3, 3, 3, 3, 3, 3, 2, 2, 2, 2 and 2, 1, 1,
/// 1: two copies have other sizes than each other at once, and one after the other.
constexpr std::array<std::int64_t, 5> kUnequalRows{13, 14, 12, 8, 5};

/// A reference that trains like `TrainedCopies`, step by step.
struct OneProcess {
  explicit OneProcess(const Program& program, LossWeight weight = nullptr)
      : reference(
            program,
            Sgd{.lr = 0.5},
            {.clip = 0.1, .keep_gradients = true, .seed = 9, .loss_weight = std::move(weight)}) {}

  void check(TrainedCopies& divided) {
    CHECK_THAT(divided.last.mean_loss, Catch::Matchers::WithinAbs(last.mean_loss, kBound));
    CHECK_THAT(divided.last.gradient_norm,
               Catch::Matchers::WithinRel(last.gradient_norm, 10 * kBound));
    StateDict gradients;
    for (const StateTensor& gradient : reference.gradients()) {
      gradients.emplace_back(gradient.name, gradient.tensor);
    }
    CHECK(distance(sorted(divided.trainer.gradients()), sorted(gradients)) <= kBound);
    StateDict weights = weights_of(divided.trainer);
    std::erase_if(weights, [](const auto& w) { return w.first.starts_with("norm."); });  // unused
    CHECK(distance(weights, weights_of(reference)) <= kBound);
  }

  Reference reference;
  ReferenceStep last;
};

TrainerOptions with_gradients(LossWeight weight = nullptr) {
  return {.clip = 0.1, .keep_gradients = true, .seed = 9, .loss_weight = std::move(weight)};
}

TEST_CASE("XC-2: microbatches of other sizes train experts like one process",
          "[integration][experts][shapes]") {
  const auto [builder, devices, copies, parts, stages] =
      GENERATE(table<std::string, int, int, int, int>({{"1f1b", 2, 2, 2, 2},
                                                       {"gpipe", 1, 4, 4, 1},
                                                       {"gpipe", 1, 4, 2, 1},
                                                       {"zb-h1", 2, 2, 2, 2},
                                                       {"zb-v", 2, 2, 2, 4}}));
  const auto recompute = GENERATE(std::vector<std::string>(),
                                  std::vector<std::string>{"EP"},
                                  std::vector<std::string>{"experts0", "layer2"},
                                  std::vector<std::string>{"part0"});
  ModelOptions model = of_stages(stages);
  model.recomputed = recompute;
  const Program program = make_program(model);
  CAPTURE(builder, copies, parts, recompute);
  TrainedCopies divided(
      in_copies_of(program,
                   {.builder = builder, .devices = devices, .copies = copies, .parts = parts}),
      Sgd{.lr = 0.5},
      with_gradients());
  OneProcess one(program);
  for (const std::int64_t rows : kUnequalRows) {
    CAPTURE(rows);
    const Data batch = rows_of(rows, divided.trainer.steps());
    divided.last = divided.trainer.step(batch.inputs, batch.labels).get();
    one.last = one.reference.step(batch.inputs, batch.labels);
    CHECK(divided.last.losses.size() == one.last.losses.size());
    one.check(divided);
  }
}

TEST_CASE("PT-2: losses by tokens, and batches of an update, weigh samples of experts",
          "[integration][experts][shapes][processes]") {
  const Program program = make_program(kExperts);
  const LossWeight by_labels =
      GENERATE(LossWeight(), LossWeight([](const std::vector<at::Tensor>& labels) {
                 return 1.0 + labels[0].eq(0).sum().item<double>();
               }));
  const bool processes = GENERATE(false, true);
  CAPTURE(processes, by_labels != nullptr);
  TrainedCopies divided(
      in_copies_of(program, {}), Sgd{.lr = 0.5}, with_gradients(by_labels), [&](int ranks) {
        return processes ? Cluster::spawn(ranks) : Cluster::local(ranks);
      });
  OneProcess one(program, by_labels);
  for (std::int64_t step = 0; step < 3; ++step) {
    for (const std::int64_t rows : {14, 8}) {
      const Data batch = rows_of(rows, 3 * step + rows);
      divided.trainer.accumulate(batch.inputs, batch.labels);
      (void)one.reference.accumulate(batch.inputs, batch.labels);
    }
    const Data batch = rows_of(13, 3 * step);
    divided.last = divided.trainer.step(batch.inputs, batch.labels).get();
    one.last = one.reference.step(batch.inputs, batch.labels);
    one.check(divided);
  }
}

TEST_CASE("weights of microbatches and scales of losses multiply",
          "[integration][experts][shapes][loss-scale]") {
  const Program program = make_program(kExperts);
  TrainerOptions options = with_gradients();
  options.loss_scaling = LossScaling{.initial = 0x1p10};
  TrainedCopies divided(in_copies_of(program, {}), Sgd{.lr = 0.5}, options);
  OneProcess one(program);
  for (const std::int64_t rows : kUnequalRows) {
    const Data batch = rows_of(rows, divided.trainer.steps());
    divided.last = divided.trainer.step(batch.inputs, batch.labels).get();
    one.last = one.reference.step(batch.inputs, batch.labels);
    CHECK_FALSE(divided.last.skipped);
    one.check(divided);
  }
}

TEST_CASE("a smaller last batch is evaluated with the experts of all ranks",
          "[integration][experts][shapes]") {
  const Program program = make_program(kExperts);
  TrainedCopies divided(in_copies_of(program, {}));
  TrainedCopies whole(in_copies_of(program, {.divided = ""}));
  for (const std::int64_t rows : {13, 3}) {  // fewer samples than microbatches, too
    divided.train(divided.trainer.steps() + 1);
    whole.train(whole.trainer.steps() + 1);
    const Data batch = rows_of(rows, rows);
    CHECK_THAT(
        divided.trainer.evaluate(batch.inputs, batch.labels),
        Catch::Matchers::WithinAbs(whole.trainer.evaluate(batch.inputs, batch.labels), kBound));
  }
}

/// Counts the samples of its experts, and leaves out the last samples, as experts without places
/// do. `by_rows`: its experts divide by the number of samples.
struct Placed : torch::nn::Module {
  explicit Placed(bool by_rows_of_experts) : by_rows(by_rows_of_experts) {}

  torch::Tensor forward(const torch::Tensor& x) {
    const torch::Tensor h = torch::tanh(front(x));
    const std::int64_t places = (h.size(0) + 1) / 2;
    const torch::Tensor placed = torch::cumsum(torch::ones({h.size(0)}), 0).le(places);
    stagecraft::count("samples_per_expert", placed.sum().repeat({4}));
    stagecraft::count("dropped", placed.logical_not().sum());
    const torch::Tensor in = h.slice(0, 0, places).unsqueeze(0).expand({4, -1, -1}).contiguous();
    const torch::Tensor out = region("EP", [&] {
      const torch::Tensor made = torch::bmm(in, weights);
      return by_rows ? made / static_cast<double>(in.size(1)) : made;
    });
    const torch::Tensor seen = torch::cat({out.sum(0), torch::zeros({h.size(0) - places, 8})});
    return head(h + seen);
  }

  bool by_rows;
  torch::nn::Linear front{register_module("front", torch::nn::Linear(8, 8))};
  torch::Tensor weights{register_parameter("weights", torch::randn({4, 8, 8}) * 0.3)};
  torch::nn::Linear head{register_module("head", torch::nn::Linear(8, 8))};
};

Program placed_program(const std::shared_ptr<Placed>& module) {
  const torch::Tensor x = torch::randn({16, 8});
  return compile(
      module,
      {.inputs = {x},
       .labels = {x},
       .loss = [](const at::Tensor& y, const at::Tensor& t) { return torch::mse_loss(y, t); },
       .microbatches = 4});
}

TEST_CASE("experts count their samples in microbatches of other sizes",
          "[integration][experts][shapes][counts]") {
  torch::manual_seed(2);
  const Program program = placed_program(std::make_shared<Placed>(false));
  const Cluster cluster = Cluster::local(2);
  Trainer trainer(cluster,
                  make_execution(program, in_copies(gpipe(1, 2), 2), {}, "EP"),
                  Sgd{.lr = 1e-2},
                  {.seed = 9});
  Reference reference(program, Sgd{.lr = 1e-2}, {.seed = 9});
  for (const std::int64_t rows : {16, 14, 9}) {  // 2, 2 and 1, 2 samples of an expert
    const torch::Tensor x = torch::randn({rows, 8});
    const StepResult result = trainer.step({x}, {x}).get();
    const ReferenceStep expected = reference.step({x}, {x});
    CHECK(result.counts == expected.counts);
    CHECK_THAT(result.mean_loss, Catch::Matchers::WithinAbs(expected.mean_loss, kBound));
  }
}

TEST_CASE("experts that depend on the number of samples train on microbatches of one size alone",
          "[integration][experts][shapes][bad-input]") {
  torch::manual_seed(2);
  const Program program = placed_program(std::make_shared<Placed>(true));
  const Cluster cluster = Cluster::local(2);
  Trainer trainer(cluster,
                  make_execution(program, in_copies(gpipe(1, 2), 2), {}, "EP"),
                  Sgd{.lr = 1e-2},
                  {.seed = 9});
  Reference reference(program, Sgd{.lr = 1e-2}, {.seed = 9});
  const torch::Tensor unequal = torch::randn({10, 8});
  CHECK_THAT(refusal([&] { (void)trainer.step({unequal}, {unequal}); }),
             ContainsSubstring("a region of stage") && ContainsSubstring("aten::div") &&
                 ContainsSubstring("make it independent of the number of samples"));
  for (const std::int64_t rows : {16, 8}) {
    const torch::Tensor x = torch::randn({rows, 8});
    const double loss = trainer.step({x}, {x}).get().mean_loss;
    CHECK_THAT(loss, Catch::Matchers::WithinAbs(reference.step({x}, {x}).mean_loss, kBound));
  }
}

}  // namespace
}  // namespace stagecraft::tests::experts
