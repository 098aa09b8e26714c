/// Tests outputs and metrics of a model in evaluation mode, through the pipeline.
#include "stagecraft/actors/trainer/steps/evaluator.h"

#include <torch/torch.h>

#include "stagecraft/scheduler/builders/bidirectional/dualpipe.h"
#include "stagecraft/tests/integration/models.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

constexpr std::int64_t kWide = 6, kClasses = 3;

/// Has what evaluation mode changes: dropout, running statistics, and user code that depends on it.
struct PixelClassifierImpl : torch::nn::Module {
  torch::nn::Linear in{register_module("in", torch::nn::Linear(kWide, 12))};
  torch::nn::BatchNorm1d norm{register_module("norm", torch::nn::BatchNorm1d(12))};
  torch::nn::Dropout dropout{register_module("dropout", torch::nn::Dropout(0.4))};
  torch::nn::Linear middle{register_module("middle", torch::nn::Linear(12, 12))};
  torch::nn::Linear head{register_module("head", torch::nn::Linear(12, kClasses))};
  int calls = 0;

  torch::Tensor forward(const torch::Tensor& x) {
    ++calls;
    auto h = stage("lower", [&] { return dropout(torch::relu(norm(in(x)))); });
    h = stage("middle", [&] {
      const auto m = torch::tanh(middle(h));
      return is_training() ? dropout(m) : m * 2.0;
    });
    return stage("upper", [&] { return head(dropout(h)); });
  }
};
TORCH_MODULE(PixelClassifier);

PixelClassifier classifier() {
  torch::manual_seed(5);
  return PixelClassifier();
}

Data random_batch(std::int64_t rows, int seed) {
  auto generator = at::detail::createCPUGenerator(static_cast<std::uint64_t>(seed));
  const auto x = torch::randn({rows, kWide}, generator);
  return {.inputs = {x}, .labels = {x.narrow(1, 0, kClasses).argmax(1)}};
}

Program compiled(const PixelClassifier& model, int microbatches = 4, Cut cut = {}) {
  const Data example = random_batch(16, 0);
  return compile(model,
                 {.inputs = example.inputs,
                  .labels = example.labels,
                  .loss = torch::nn::CrossEntropyLoss(),
                  .microbatches = microbatches,
                  .cut = std::move(cut)});
}

/// Returns a module with the trained state.
PixelClassifier with_state(Trainer& trainer) {
  PixelClassifier copy = classifier();
  const torch::NoGradGuard no_grad;
  auto parameters = copy->named_parameters();
  auto buffers = copy->named_buffers();
  for (const auto& [name, tensor] : trainer.state_dict()) {
    (parameters.contains(name) ? parameters[name] : buffers[name]).copy_(tensor);
  }
  return copy;
}

/// Returns a schedule of two microbatches for each of two copies of the second stage.
Schedule uneven_copies() {
  const Schedule one = one_f_one_b(3, 2);
  return {one.form(), one.rows(), {.places = {{Rank(0)}, {Rank(1), Rank(2)}, {Rank(3)}}}};
}

void train(Trainer& trainer, int steps) {
  for (int i = 0; i < steps; ++i) {
    const Data batch = random_batch(16, i);
    (void)trainer.step(batch.inputs, batch.labels).get();
  }
}

bool same_state(Trainer& a, Trainer& b) {
  return std::ranges::equal(a.state_dict(), b.state_dict(), [](const auto& p, const auto& q) {
    return p.first == q.first && torch::equal(p.second, q.second);
  });
}

TEST_CASE(
    "predictions and metrics are those of the module in evaluation mode, whatever the cut, "
    "the schedule, the workers and the number of samples",
    "[integration][evaluation]") {
  struct Row {
    std::string name;
    Cluster cluster;
    Schedule schedule;
    Cut cut;
  };
  PixelClassifier model = classifier();
  const int which = GENERATE(0, 1, 2, 3, 4, 5);
  const Row row =
      which == 0   ? Row{"threads", Cluster::local(3), one_f_one_b(3, 4), {}}
      : which == 1 ? Row{"processes", Cluster::spawn(3), one_f_one_b(3, 4), {}}
      : which == 2 ? Row{"a cut through markers", Cluster::local(2), gpipe(2, 4), At{{"middle"}}}
      : which == 3 ? Row{"replicas", Cluster::local(2), dualpipe(2, 4), At{{"middle"}}}
      : which == 4 ? Row{"copies", Cluster::local(6), in_copies(one_f_one_b(3, 2), 2), {}}
                   : Row{"1, 2 and 1 copies", Cluster::local(4), uneven_copies(), {}};
  INFO(row.name);
  const Program program = compiled(model, 4, row.cut);
  Trainer trainer(row.cluster, program, row.schedule, Sgd{.lr = 0.1});
  Trainer undisturbed(Cluster::local(row.cluster.ranks()), program, row.schedule, Sgd{.lr = 0.1});
  train(trainer, 3);
  PixelClassifier copy = with_state(trainer);
  copy->eval();
  const std::vector<Metric> metrics{
      {"accuracy", accuracy},
      {"margin", [](torch::Tensor output, torch::Tensor label) {
         return (output.softmax(1) - torch::one_hot(label, kClasses)).abs().mean(0);
       }}};
  std::vector<LabeledBatch> batches;
  std::vector<torch::Tensor> outputs, labels;
  for (const std::int64_t rows : {16, 13, 1}) {
    const Data batch = random_batch(rows, 40 + static_cast<int>(rows));
    const auto predicted = trainer.predict(batch.inputs);
    REQUIRE(predicted.size() == 1);
    const auto expected = copy->forward(batch.inputs[0].tensor);
    CHECK(predicted[0].sizes() == expected.sizes());
    CHECK(torch::allclose(predicted[0], expected, 1e-5, 1e-6));
    batches.push_back({batch.inputs, batch.labels});
    outputs.push_back(expected);
    labels.push_back(batch.labels[0].tensor);
  }
  const Evaluation found = trainer.evaluate(batches, metrics);
  const auto all = torch::cat(outputs), targets = torch::cat(labels);
  CHECK(found.batches == 3);
  CHECK(found.samples == 30);
  CHECK(std::abs(found.loss - torch::cross_entropy_loss(all, targets).item<double>()) < 1e-6);
  CHECK(std::abs(found["accuracy"] - accuracy(all, targets).item<double>()) < 1e-9);
  CHECK(torch::allclose(
      found.metrics[1].second, metrics[1].call()({all}, {targets}).to(torch::kDouble), 1e-5, 1e-6));
  CHECK(trainer.evaluate(batches[1].inputs, batches[1].labels) ==
        trainer.evaluate({batches[1]}).loss);

  train(trainer, 2);
  train(undisturbed, 3);
  train(undisturbed, 2);
  CHECK(same_state(trainer, undisturbed));
  CHECK(model->is_training());
  CHECK(model->dropout->is_training());
}

TEST_CASE("EV-2: a module is captured in evaluation mode once, not for every batch",
          "[integration][evaluation]") {
  PixelClassifier model = classifier();
  const Program program = compiled(model);
  Trainer trainer(Cluster::local(3), program, one_f_one_b(3, 4), Sgd{});
  Trainer other(Cluster::local(3), program, one_f_one_b(3, 4), Sgd{});
  const Data batch = random_batch(16, 1);
  const auto calls = [&](auto&& body) {
    const int before = model->calls;
    body();
    return model->calls - before;
  };
  model->norm->eval();  // modes of parts are restored one by one
  const auto evaluate = [&](Trainer& which) {
    (void)which.evaluate({{batch.inputs, batch.labels}}, {{"accuracy", accuracy}});
  };
  CHECK(calls([&] { evaluate(trainer); }) > 0);
  CHECK(model->is_training());
  CHECK_FALSE(model->norm->is_training());
  CHECK(calls([&] { evaluate(trainer); }) == 0);
  CHECK(calls([&] { evaluate(other); }) == 0);
  double scale = 2.0;
  const auto scaled = [scale](torch::Tensor output, torch::Tensor) {
    return output.mean() * scale;
  };
  const std::vector<Metric> kept{{"scaled", scaled}};
  CHECK(calls([&] { (void)trainer.evaluate({{batch.inputs, batch.labels}}, kept); }) > 0);
  CHECK(calls([&] { (void)trainer.evaluate({{batch.inputs, batch.labels}}, kept); }) == 0);
  // There are more metrics than are kept: the oldest are dropped, and captured again when used
  // again.
  for (int i = 0; i < 12; ++i) {
    const Evaluation found = trainer.evaluate(
        {{batch.inputs, batch.labels}}, {{"made", [i](torch::Tensor output, torch::Tensor) {
                                            return output.new_full({}, i) + 0.0 * output.mean();
                                          }}});
    CHECK(found["made"] == i);
  }
  CHECK(trainer.evaluate({{batch.inputs, batch.labels}}, kept)["scaled"] ==
        other.evaluate({{batch.inputs, batch.labels}}, kept)["scaled"]);
}

/// Holds the rows of a batch, one by one, as a loader of LibTorch reads them.
struct RowsOf : torch::data::datasets::Dataset<RowsOf> {
  explicit RowsOf(const Data& batch) : x(batch.inputs[0].tensor), y(batch.labels[0].tensor) {}

  torch::data::Example<> get(std::size_t index) override {
    const auto row = static_cast<std::int64_t>(index);
    return {x[row], y[row]};
  }
  [[nodiscard]] std::optional<std::size_t> size() const override {
    return static_cast<std::size_t>(x.size(0));
  }

  torch::Tensor x, y;
};

TEST_CASE("a loader is predicted batch by batch, in order, and its last batch may be smaller",
          "[integration][evaluation]") {
  PixelClassifier model = classifier();
  Trainer trainer(Cluster::local(3), compiled(model), one_f_one_b(3, 4), Sgd{});
  const Data all = random_batch(35, 7);
  const std::vector<torch::Tensor> inputs = all.inputs[0].tensor.split(16);
  const std::vector<torch::Tensor> labels = all.labels[0].tensor.split(16);
  REQUIRE(inputs.back().size(0) == 3);  // fewer than microbatches
  std::vector<LabeledBatch> labeled;
  std::vector<Batch> unlabeled;
  std::vector<torch::Tensor> expected;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    labeled.push_back({{inputs[i]}, {labels[i]}});
    unlabeled.push_back({inputs[i]});
    expected.push_back(trainer.predict({inputs[i]})[0]);
  }
  const torch::Tensor whole = torch::cat(expected);
  CHECK(torch::equal(trainer.predict(labeled)[0], whole));
  CHECK(torch::equal(trainer.predict(unlabeled)[0], whole));
  CHECK(torch::equal(trainer.predict(inputs)[0], whole));
  const auto loader = std::make_unique<std::vector<LabeledBatch>>(labeled);
  CHECK(torch::equal(trainer.predict(loader)[0], whole));
  const auto of_libtorch = torch::data::make_data_loader<torch::data::samplers::SequentialSampler>(
      RowsOf(all).map(torch::data::transforms::Stack<>()), 16);
  CHECK(torch::equal(trainer.predict(of_libtorch)[0], whole));
  std::vector<torch::Tensor> told;
  trainer.predict(labeled, [&](std::vector<torch::Tensor> outputs) {
    told.push_back(std::move(outputs.at(0)));
  });
  REQUIRE(told.size() == 3);
  for (std::size_t i = 0; i < told.size(); ++i) {
    CHECK(torch::equal(told[i], expected[i]));
  }
  CHECK_THAT(refusal([&] { (void)trainer.predict(std::vector<LabeledBatch>{}); }),
             ContainsSubstring("predict() expects at least one batch"));
  CHECK_THROWS_AS(trainer.predict(labeled,
                                  [](const std::vector<torch::Tensor>& /*outputs*/) {
                                    throw std::domain_error("mine");
                                  }),
                  std::domain_error);
  train(trainer, 1);
}

TEST_CASE("outputs of batches that differ in another dimension come one by one",
          "[integration][evaluation]") {
  struct WordsImpl : torch::nn::Module {
    torch::nn::Linear body{register_module("body", torch::nn::Linear(kWide, 2))};
    torch::Tensor forward(const torch::Tensor& x) { return body(x); }
  };
  const auto x = torch::randn({4, 5, kWide});
  const Program program = compile(std::make_shared<WordsImpl>(),
                                  {.inputs = {x},
                                   .loss = [](const torch::Tensor& y) { return y.square().mean(); },
                                   .microbatches = 2});
  Trainer trainer(program, "1f1b", Sgd{});
  const std::vector<torch::Tensor> longer{x, torch::randn({4, 7, kWide})};
  CHECK_THAT(refusal([&] { (void)trainer.predict(longer); }, Errc::CompileShape),
             ContainsSubstring("[4, 5, 2] for one batch and [4, 7, 2] for another") &&
                 ContainsSubstring("a function that takes the outputs"));
  std::vector<std::int64_t> lengths;
  trainer.predict(longer, [&](const std::vector<torch::Tensor>& outputs) {
    lengths.push_back(outputs[0].size(1));
  });
  CHECK(lengths == std::vector<std::int64_t>{5, 7});
}

/// Returns tensors that lack the batch's rows, and tensors that it was given.
struct ManyImpl : torch::nn::Module {
  torch::nn::Linear body{register_module("body", torch::nn::Linear(kWide, 4))};
  torch::Tensor scale{register_parameter("scale", torch::full({}, 2.0))};

  std::tuple<torch::Tensor, std::vector<torch::Tensor>> forward(const torch::Tensor& x) {
    const auto h = stage("body", body, x);
    return stage("end", [&] {
      const auto y = h * scale;
      return std::tuple(y, std::vector<torch::Tensor>{y.mean(), x, scale, y.t().contiguous().t()});
    });
  }
};
TORCH_MODULE(Many);

TEST_CASE("all that forward returns is predicted: numbers, inputs, parameters, transposed views",
          "[integration][evaluation]") {
  Many model;
  const auto x = torch::randn({8, kWide});
  const Program program = compile(model,
                                  {.inputs = {x},
                                   .loss = [](const torch::Tensor& y) { return y.square().mean(); },
                                   .microbatches = 4});
  Trainer trainer(Cluster::local(2), program, one_f_one_b(2, 4), Sgd{});
  const auto found = trainer.predict({x});
  REQUIRE(found.size() == 5);
  const auto expected = model->body(x) * model->scale;
  CHECK(torch::allclose(found[0], expected));
  CHECK(torch::allclose(found[1], expected.view({4, 2, 4}).mean({1, 2})));
  CHECK(torch::equal(found[2], x));
  CHECK(torch::equal(found[3], torch::full({4}, 2.0)));
  CHECK(torch::equal(found[4], found[0]));
}

TEST_CASE("outputs whose shape hangs on the samples of a microbatch are joined where they can be",
          "[integration][evaluation]") {
  struct PairsImpl : torch::nn::Module {
    torch::nn::Linear body{register_module("body", torch::nn::Linear(kWide, 4))};
    torch::Tensor forward(const torch::Tensor& x) {
      const auto h = body(x);
      return h.matmul(h.t());
    }
  };
  const auto model = std::make_shared<PairsImpl>();
  const auto x = torch::randn({8, kWide});
  const Program program = compile(model,
                                  {.inputs = {x},
                                   .loss = [](const torch::Tensor& y) { return y.square().mean(); },
                                   .microbatches = 4});
  Trainer trainer(program, "1f1b", Sgd{});
  CHECK(trainer.predict({x})[0].sizes() == at::IntArrayRef{8, 2});
  CHECK_THAT(refusal([&] { (void)trainer.predict({x.narrow(0, 0, 7)}); }, Errc::CompileShape),
             ContainsSubstring("[2, 2]") && ContainsSubstring("[1, 1]"));
}

TEST_CASE("a model from a file is evaluated in evaluation mode, whatever mode it was saved in",
          "[integration][evaluation]") {
  const std::string folder = "tests/data/models/resnet";
  std::vector<std::vector<torch::Tensor>> predicted;
  double eager = 0.0;
  for (const std::string file : {"/model.pt2", "/model.pt"}) {
    ModelFile model = load_model(folder + file);
    const MicrobatchFiles data(folder);
    describe_inputs(model, data);
    const Program program = compile(model,
                                    {.inputs = data.batch(0),
                                     .microbatches = data.microbatches(),
                                     .cut = Balanced{.stages = 2}});
    Trainer trainer(
        Cluster::local(2), program, one_f_one_b(2, data.microbatches()), Sgd{.lr = 1e-3});
    eager = trainer.step(data.batch(0), {}).get().mean_loss;
    predicted.push_back(trainer.predict(data.batch(1)));
    CHECK(std::abs(trainer.evaluate(data.batch(1), {}) -
                   predicted.back()[0].to(torch::kDouble).mean().item<double>()) < 1e-5);
  }
  REQUIRE(predicted[0].size() == predicted[1].size());
  for (std::size_t i = 0; i < predicted[0].size(); ++i) {
    CHECK(torch::allclose(predicted[0][i], predicted[1][i], 1e-4, 1e-5));
  }
  CHECK(std::isfinite(eager));
}

TEST_CASE("what cannot be evaluated is told, and training continues", "[integration][evaluation]") {
  PixelClassifier model = classifier();
  const Program program = compiled(model);
  Trainer trainer(Cluster::local(3), program, one_f_one_b(3, 4), Sgd{});
  const Data batch = random_batch(16, 1);
  const auto measure = [&](const Metric& metric) {
    (void)trainer.evaluate({{batch.inputs, batch.labels}}, {metric});
  };
  CHECK_THAT(refusal(
                 [&] {
                   measure({"read", [](torch::Tensor output, torch::Tensor) {
                              return torch::full({}, output.mean().item<double>());
                            }});
                 },
                 Errc::CompileCapture),
             ContainsSubstring("predict()"));
  CHECK_THAT(refusal(
                 [&] {
                   measure({"same", [](torch::Tensor, torch::Tensor) { return torch::ones({}); }});
                 },
                 Errc::CompileCapture),
             ContainsSubstring("\"same\""));
  CHECK_THAT(refusal(
                 [&] {
                   (void)trainer.predict({torch::randn({16, kWide}, torch::kDouble)});
                 },
                 Errc::CompileShape),
             ContainsSubstring("float64"));
  CHECK_THAT(refusal(
                 [&] {
                   (void)trainer.predict({torch::randn({0, kWide})});
                 },
                 Errc::CompileShape),
             ContainsSubstring("has no sample: pass at least one"));
  refusal([&] { (void)trainer.evaluate(std::vector<LabeledBatch>{}); }, Errc::UsageArgument);
  refusal(
      [&] {
        (void)trainer.evaluate({{batch.inputs, batch.labels}})["accuracy"];
      },
      Errc::UsageArgument);
  train(trainer, 1);

  const Data example = random_batch(16, 0);
  const Program orphan = [&] {
    PixelClassifierImpl gone;
    return compile(gone,
                   {.inputs = example.inputs,
                    .labels = example.labels,
                    .loss = torch::nn::CrossEntropyLoss(),
                    .microbatches = 4});
  }();
  Trainer of_orphan(Cluster::local(3), orphan, one_f_one_b(3, 4), Sgd{});
  CHECK_THAT(refusal([&] { (void)of_orphan.predict(batch.inputs); }, Errc::CompileShape),
             ContainsSubstring("is gone"));
  train(of_orphan, 1);
}

}  // namespace
}  // namespace stagecraft::tests
