/// Tests fit(): loaders of LibTorch and others, their description, and their errors; and updates of
/// several batches, by fit and by hand.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <list>
#include <map>
#include <sstream>
#include <thread>

#include <torch/torch.h>

#include "stagecraft/scheduler/builders/bidirectional/dualpipe.h"
#include "stagecraft/tests/integration/failing_rank.h"
#include "stagecraft/tests/integration/models.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/modules.h"

namespace stagecraft::tests {
/// Is a user's own batch type.
struct Drawn {
  torch::Tensor points, values;
};
}  // namespace stagecraft::tests

template <>
struct stagecraft::BatchOf<stagecraft::tests::Drawn> {
  static LabeledBatch make(const tests::Drawn& drawn) { return {{drawn.points}, {drawn.values}}; }
};

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
namespace torch_data = torch::data;

constexpr double kRate = 1e-2;

/// Has two stages; draws and counts, so that running it twice or in another order shows.
struct Net : torch::nn::Module {
  torch::nn::Linear in{register_module("in", torch::nn::Linear(3, 8))};
  torch::nn::Linear out{register_module("out", torch::nn::Linear(8, 1))};
  torch::Tensor seen{register_buffer("seen", torch::zeros({}, torch::kLong))};

  torch::Tensor forward(torch::Tensor x) {
    const auto h = stage("first", [&] {
      seen.add_(1);
      return torch::tanh(in(x));
    });
    return stage("second", [&] { return out(torch::dropout(h, 0.2, true)); });
  }
};

/// Takes microbatches of four rows. The module is shared, so that other shapes can be captured.
Program net_program(int microbatches) {
  torch::manual_seed(3);
  const auto net = std::make_shared<Net>();
  return compile(net,
                 {.inputs = {torch::randn({4 * microbatches, 3})},
                  .labels = {torch::randn({4 * microbatches, 1})},
                  .loss = testing::mean_square,
                  .microbatches = microbatches});
}

/// Returns `rows` points whose values follow from them.
LabeledBatch points(std::int64_t rows, double from = 0.0) {
  const torch::Tensor x =
      torch::arange(static_cast<double>(rows * 3)).view({rows, 3}).mul(0.01).add(from).sin();
  return {{x}, {x.sum(1, true)}};
}

/// Holds 20 points, one by one.
struct Points : torch_data::datasets::Dataset<Points> {
  std::size_t throws_at = 1000;

  torch_data::Example<> get(std::size_t index) override {
    if (index == throws_at) {
      throw std::out_of_range("no such file: 7.png");
    }
    const auto [x, y] = points(20);
    const auto i = static_cast<std::int64_t>(index);
    return {x[0].tensor[i], y[0].tensor[i]};
  }
  [[nodiscard]] std::optional<std::size_t> size() const override { return 20; }
};

auto points_loader(std::size_t batch_size) {
  return torch_data::make_data_loader<torch_data::samplers::SequentialSampler>(
      Points().map(torch_data::transforms::Stack<>()), batch_size);
}

/// Gives the same as a stream, whose batches are not stacked.
struct Stream : torch_data::datasets::StatefulDataset<Stream> {
  std::size_t next = 0;

  std::optional<std::vector<torch_data::Example<>>> get_batch(std::size_t size) override {
    std::vector<torch_data::Example<>> batch;
    for (; next < 20 && batch.size() < size; ++next) {
      batch.push_back(Points().get(next));
    }
    return batch.empty() ? std::nullopt : std::optional(batch);
  }
  void reset() override { next = 0; }
  [[nodiscard]] std::optional<std::size_t> size() const override { return 20; }
  void save(torch::serialize::OutputArchive& /*archive*/) const override {}
  void load(torch::serialize::InputArchive& /*archive*/) override {}
};

Error thrown(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error;
  }
  FAIL("nothing was thrown");
  return {Errc::Internal, ""};
}

FitOptions quiet(FitOptions options) {
  options.progress = nullptr;
  return options;
}

Trainer net_trainer(TrainerOptions options = {}) {
  options.seed = 5;
  return {net_program(2), "1f1b", AdamW{.lr = kRate}, std::move(options)};
}

/// Does by hand what fit does: two epochs of 8, 8 and 4 points.
StateDict trained_by_hand() {
  Trainer trainer = net_trainer();
  const auto [x, y] = points(20);
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (const auto& [begin, rows] : {std::pair{0, 8}, {8, 8}, {16, 4}}) {
      (void)trainer.step({x[0].tensor.narrow(0, begin, rows)}, {y[0].tensor.narrow(0, begin, rows)})
          .get();
    }
  }
  return trainer.state_dict();
}

/// Has two stages with a norm over the rows of a microbatch, which needs at least two rows.
struct NormedNet : torch::nn::Module {
  torch::nn::Linear in{register_module("in", torch::nn::Linear(3, 8))};
  torch::nn::BatchNorm1d norm{register_module("norm", torch::nn::BatchNorm1d(8))};
  torch::nn::Linear out{register_module("out", torch::nn::Linear(8, 1))};

  torch::Tensor forward(torch::Tensor x) {
    const auto h = stage("first", [&] { return torch::tanh(norm(in(x))); });
    return stage("second", [&] { return out(h); });
  }
};

TEST_CASE("a last batch of 13 rows in 4 microbatches trains through a batch norm",
          "[integration][fit]") {
  constexpr int kMicrobatches = 4;
  torch::manual_seed(3);
  const auto net = std::make_shared<NormedNet>();
  const Program program = compile(net,
                                  {.inputs = points(16).inputs,
                                   .labels = points(16).labels,
                                   .loss = testing::mean_square,
                                   .microbatches = kMicrobatches});
  const std::list<LabeledBatch> batches{points(16), points(13, 1.0)};
  Trainer trainer(program, "1f1b", Sgd{.lr = kRate}, {.seed = 5});
  CHECK(trainer.fit(batches, quiet({.epochs = 2})).epochs == 2);

  torch::optim::SGD optimizer(net->parameters(), kRate);
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (const auto& [inputs, labels] : batches) {
      const torch::Tensor x = inputs[0].tensor;
      optimizer.zero_grad();
      const auto parts = x.tensor_split(kMicrobatches);
      const auto targets = labels[0].tensor.tensor_split(kMicrobatches);
      for (std::size_t m = 0; m < parts.size(); ++m) {
        const auto weight = static_cast<double>(parts[m].size(0)) / static_cast<double>(x.size(0));
        (testing::mean_square(net->forward(parts[m]), targets[m]) * weight).backward();
      }
      optimizer.step();
    }
  }
  const StateDict state = trainer.state_dict();
  const std::map<std::string, torch::Tensor> trained(state.begin(), state.end());
  for (const auto& parameter : net->named_parameters()) {
    CAPTURE(parameter.key());
    CHECK(torch::allclose(trained.at(parameter.key()), parameter.value(), 1e-5, 1e-6));
  }
  for (const auto& buffer : net->named_buffers()) {
    CAPTURE(buffer.key());
    CHECK(torch::allclose(trained.at(buffer.key()), buffer.value(), 1e-5, 1e-6));
  }
}

TEST_CASE("fit trains on whatever has batches, as a loop over step does", "[integration][fit]") {
  const StateDict expected = trained_by_hand();
  const auto trained = [](auto&& loader, int prefetch) {
    Trainer trainer = net_trainer();
    const FitResult result = trainer.fit(loader, quiet({.epochs = 2, .prefetch = prefetch}));
    CHECK(result.epochs == 2);
    CHECK(result.steps == 6);
    CHECK(result.samples == 40);
    CHECK(trainer.steps() == 6);
    return trainer.state_dict();
  };
  const auto [x, y] = points(20);
  const auto cut = [](const Batch& side) { return side[0].tensor.split(8); };
  for (const int prefetch : {0, 1, 3}) {
    CAPTURE(prefetch);
    CHECK(same_bits(trained(points_loader(8), prefetch), expected));
    CHECK(same_bits(trained(*points_loader(8), prefetch), expected));
    CHECK(same_bits(
        trained(torch_data::make_data_loader(Stream(), torch_data::DataLoaderOptions(8)), prefetch),
        expected));
    std::vector<std::pair<torch::Tensor, torch::Tensor>> pairs;
    std::list<LabeledBatch> labeled;
    std::vector<Drawn> drawn;
    for (std::size_t i = 0; i < 3; ++i) {
      pairs.emplace_back(cut(x)[i], cut(y)[i]);
      labeled.push_back({{cut(x)[i]}, {cut(y)[i]}});
      drawn.push_back({cut(x)[i], cut(y)[i]});
    }
    CHECK(same_bits(trained(pairs, prefetch), expected));
    CHECK(same_bits(trained(labeled, prefetch), expected));
    CHECK(same_bits(trained(drawn, prefetch), expected));
  }
}

TEST_CASE("fit tells every step once and in order, on the caller's thread", "[integration][fit]") {
  Trainer trainer = net_trainer();
  std::ostringstream told;
  std::vector<FitStep> steps;
  std::vector<std::thread::id> threads;
  const FitResult result = trainer.fit(points_loader(8),
                                       {.epochs = 3,
                                        .on_step =
                                            [&](const FitStep& step) {
                                              steps.push_back(step);
                                              threads.push_back(std::this_thread::get_id());
                                            },
                                        .accumulate = 2,
                                        .progress = &told});
  REQUIRE(steps.size() == 6);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    CHECK(steps[i].step == static_cast<std::int64_t>(i) + 1);
    CHECK(steps[i].epoch == static_cast<std::int64_t>(i) / 2 + 1);
    CHECK(steps[i].batches == (i % 2 == 0 ? 2 : 1));
    CHECK(steps[i].samples == (i % 2 == 0 ? 16 : 4));
    CHECK(steps[i].losses.size() == (i % 2 == 0 ? 4 : 2));
    CHECK(threads[i] == std::this_thread::get_id());
  }
  REQUIRE(result.epoch_losses.size() == 3);
  CHECK(result.epoch_losses[2] ==
        Catch::Approx((16 * steps[4].mean_loss + 4 * steps[5].mean_loss) / 20));
  CHECK(result.last_loss == steps[5].mean_loss);
  CHECK(result.end == FitEnd::Epochs);
  CHECK_FALSE(result.best);
  CHECK_THAT(told.str(), ContainsSubstring("epoch 1/3  step 2  loss "));
  CHECK_THAT(told.str(), ContainsSubstring("epoch 3/3  step 6  loss "));
  CHECK(std::ranges::count(told.str(), '\n') == 3);
}

TEST_CASE("fit leaves out what is not full, where it is asked to", "[integration][fit]") {
  Trainer trainer = net_trainer();
  CHECK(trainer.fit(points_loader(8), quiet({.epochs = 2, .drop_last = true})).samples == 32);
  CHECK(trainer.fit(points_loader(5), quiet({.accumulate = 3, .drop_last = true})).samples == 15);
  CHECK(trainer.fit(points_loader(4), quiet({.accumulate = 5, .drop_last = true})).samples == 20);
  CHECK(trainer.steps() == 4 + 1 + 1);
}

TEST_CASE("on_step ends fit by false, or by what it throws", "[integration][fit]") {
  Trainer trainer = net_trainer({.outstanding = 1});
  FitResult result =
      trainer.fit(points_loader(4),
                  quiet({.epochs = 9, .on_step = [](const StepResult& s) { return s.step < 3; }}));
  CHECK(result.end == FitEnd::OnStep);
  CHECK(result.steps == 3);  // one step at a time is under way
  CHECK(trainer.steps() == 3);
  const auto throws = [](const FitStep& /*step*/) { throw std::domain_error("mine"); };
  CHECK_THROWS_AS(trainer.fit(points_loader(4), quiet({.on_step = throws})), std::domain_error);
  const std::int64_t steps = trainer.steps();
  CHECK(trainer.fit(points_loader(4), quiet({})).steps == 5);  // it works as before
  CHECK(trainer.steps() == steps + 5);
}

TEST_CASE("what is wrong with a loader is told with its place, once its steps are over",
          "[integration][fit]") {
  Trainer trainer = net_trainer();
  const auto refused = [&](auto&& loader, const FitOptions& options, Errc code) {
    const Error error = thrown([&] { (void)trainer.fit(loader, quiet(options)); });
    CHECK(error.code() == code);
    return std::string(error.what());
  };
  Points points_until_7;
  points_until_7.throws_at = 7;
  std::vector<double> told;
  const auto broken =
      refused(torch_data::make_data_loader<torch_data::samplers::SequentialSampler>(
                  std::move(points_until_7).map(torch_data::transforms::Stack<>()), 2),
              {.on_step = [&](const StepResult& s) { told.push_back(s.mean_loss); }},
              Errc::UsageArgument);
  CHECK_THAT(broken,
             ContainsSubstring("the loader threw in epoch 1, after batch 3") &&
                 ContainsSubstring("no such file: 7.png"));
  CHECK(told.size() == 3);
  CHECK(trainer.steps() == 3);

  CHECK_THAT(refused(std::vector<LabeledBatch>(), {}, Errc::UsageArgument),
             ContainsSubstring("the loader has no batch in epoch 1"));
  CHECK_THAT(refused(std::vector{points(8), points(1)}, {}, Errc::CompileShape),
             ContainsSubstring("epoch 1, batch 2: the batch has 1 sample for 2 microbatches"));
  CHECK_THAT(refused(std::vector{points(8)}, {.epochs = 0}, Errc::UsageArgument),
             ContainsSubstring("epochs is at least 1, not 0"));
  CHECK_THAT(refused(std::vector{points(8)}, {.accumulate = 0}, Errc::UsageArgument),
             ContainsSubstring("accumulate is at least 1"));
  CHECK_THAT(refused(std::vector{points(8)}, {.prefetch = -1}, Errc::UsageArgument),
             ContainsSubstring("prefetch"));
}

TEST_CASE("a step that fails ends fit, and the next fit begins anew", "[integration][fit]") {
  const auto failing = std::make_shared<FailingRank>();
  Trainer trainer = net_trainer({.before_instruction = hook_of(failing)});
  const StateDict before = trainer.state_dict();
  failing->fail_at(first(trainer.plan(), Rank(1), Op::Vote));
  CHECK_THROWS_WITH(trainer.fit(std::vector{points(8), points(8)}, quiet({.accumulate = 2})),
                    ContainsSubstring("injected failure"));
  CHECK(same_bits(trainer.state_dict(), before));
  CHECK(trainer.fit(std::vector{points(8)}, quiet({.accumulate = 2})).steps == 1);
}

// ---- limits, evaluations, rates -----------------------------------------------------------------

TEST_CASE("fit ends at its last step or after its time, and says so", "[integration][fit]") {
  Trainer trainer = net_trainer();
  FitResult result = trainer.fit(points_loader(8), quiet({.epochs = 9, .max_steps = 4}));
  CHECK(result.end == FitEnd::MaxSteps);
  CHECK(result.epochs == 1);
  CHECK(trainer.steps() == 4);
  result = trainer.fit(points_loader(8), quiet({.epochs = 9, .max_steps = 4}));
  CHECK(result.end == FitEnd::MaxSteps);
  CHECK(result.steps == 0);
  CHECK(trainer.fit(points_loader(8), quiet({.epochs = 1, .max_steps = 7})).end == FitEnd::Epochs);
  result = trainer.fit(points_loader(8), quiet({.epochs = 9, .max_steps = 8, .accumulate = 3}));
  CHECK(trainer.steps() == 8);
  result = trainer.fit(points_loader(8),
                       quiet({.epochs = 1'000'000, .max_time = std::chrono::milliseconds(20)}));
  CHECK(result.end == FitEnd::MaxTime);
  CHECK(result.seconds >= 0.02);
  CHECK(result.steps > 0);
}

TEST_CASE("fit evaluates at the end of each epoch, or every so many steps, and after the last one",
          "[integration][fit]") {
  Trainer trainer = net_trainer();
  const std::vector<LabeledBatch> test{points(8, 2.0), points(4, 3.0)};
  std::vector<std::pair<std::int64_t, std::int64_t>> places;
  std::int64_t told = 0;
  const auto options = [&](std::int64_t epochs, std::int64_t every) {
    places.clear();
    return FitOptions{.epochs = epochs,
                      .on_step = [&](const FitStep& step) { told = step.step; },
                      .validation = {.data = test,
                                     .every = every,
                                     .on_evaluation =
                                         [&](const FitEvaluation& found) {
                                           CHECK(found.step == told);
                                           CHECK(trainer.steps() == told);
                                           CHECK(found.samples == 12);
                                           CHECK(found.watched == found.loss);
                                           CHECK(found.loss == trainer.evaluate(test).loss);
                                           places.emplace_back(found.step, found.epoch);
                                         }},
                      .progress = nullptr};
  };
  using Places = std::vector<std::pair<std::int64_t, std::int64_t>>;
  (void)trainer.fit(points_loader(8), options(2, 0));
  CHECK(places == Places{{3, 1}, {6, 2}});
  (void)trainer.fit(points_loader(8), options(2, 4));
  CHECK(places == Places{{8, 1}, {12, 2}});
  (void)trainer.fit(points_loader(8), options(1, 10));
  CHECK(places == Places{{15, 1}});
  FitOptions ended = options(3, 0);
  ended.on_step = [&](const FitStep& step) {
    told = step.step;
    return false;
  };
  CHECK(trainer.fit(points_loader(8), ended).end == FitEnd::OnStep);
  CHECK(places.empty());
}

TEST_CASE("fit evaluations change no bit of the training", "[integration][fit]") {
  Trainer trainer = net_trainer();
  const std::vector<LabeledBatch> test{points(6, 2.0)};
  (void)trainer.fit(points_loader(8),
                    quiet({.epochs = 2, .validation = {.data = test, .every = 1}}));
  CHECK(same_bits(trainer.state_dict(), trained_by_hand()));
}

TEST_CASE("the best state is saved when it is found, and told", "[integration][fit]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/best.ckpt";
  const Goal goal = GENERATE(Goal::Min, Goal::Max);
  Trainer trainer = net_trainer();
  const std::vector<LabeledBatch> test{points(8, 2.0)};
  const auto error = [](torch::Tensor output, torch::Tensor label) {
    return (output - label).abs().mean();
  };
  std::ostringstream told;
  std::map<double, std::int64_t> found;
  const FitResult result = trainer.fit(
      points_loader(8),
      {.epochs = 5,
       .validation = {.data = test,
                      .metrics = {{"error", error}},
                      .watch = "error",
                      .goal = goal,
                      .best_path = path,
                      .on_evaluation =
                          [&](const FitEvaluation& e) {
                            CHECK(e.watched == e["error"]);
                            found.emplace(e.watched, e.step);
                            const double best =
                                goal == Goal::Min ? found.begin()->first : found.rbegin()->first;
                            CHECK(e.is_best == (best == e.watched));
                          }},
       .progress = &told});
  REQUIRE(result.best);
  const auto& [value, step] = goal == Goal::Min ? *found.begin() : *found.rbegin();
  CHECK(result.best->value == value);
  CHECK(result.best->step == step);
  CHECK(result.best->path == path);
  CHECK_THAT(told.str(), ContainsSubstring("evaluated error "));
  trainer.load(path);
  CHECK(trainer.steps() == step);
  CHECK(trainer.evaluate(test, {{"error", error}})["error"] == value);
  REQUIRE(trainer.loop_state());
  CHECK(trainer.loop_state()->watch.best == value);
}

TEST_CASE("fit ends early, and rates fall, when the metric no longer improves",
          "[integration][fit]") {
  Trainer trainer = net_trainer();
  const std::vector<LabeledBatch> test{points(8, 2.0)};
  std::vector<double> rates;
  std::vector<bool> improved;
  const FitResult result = trainer.fit(
      points_loader(8),
      quiet({.epochs = 50,
             .on_step = [&](const FitStep& step) { rates.push_back(step.learning_rate); },
             .validation = {.data = test,
                            .min_delta = 1e9,
                            .patience = 5,
                            .plateau = Plateau{.factor = 0.5, .patience = 2, .least = 0.4},
                            .on_evaluation = [&](const FitEvaluation& found) {
                              improved.push_back(found.improved);
                            }}}));
  CHECK(result.end == FitEnd::Patience);
  CHECK(result.epochs == 6);
  CHECK(improved == std::vector<bool>{true, false, false, false, false, false});
  REQUIRE(rates.size() == 18);
  for (std::size_t i = 0; i < rates.size(); ++i) {
    CAPTURE(i);
    CHECK(rates[i] == kRate * (i < 9 ? 1.0 : i < 15 ? 0.5 : 0.4));
  }
  const LabeledBatch batch = points(8);
  CHECK(trainer.step(batch.inputs, batch.labels).get().learning_rate == kRate);
}

TEST_CASE("rates may follow the epoch", "[integration][fit]") {
  Trainer trainer = net_trainer(
      {.learning_rate = {.of_step = [](std::int64_t step) { return 1.0 / double(step + 1); }}});
  std::vector<double> rates;
  const auto halves = [](std::int64_t epoch) { return std::exp2(1.0 - double(epoch)); };
  (void)trainer.fit(points_loader(10),
                    quiet({.epochs = 3,
                           .on_step = [&](const FitStep& s) { rates.push_back(s.learning_rate); },
                           .rate_of_epoch = halves}));
  CHECK(rates == std::vector{1.0, 0.5, 0.5 / 3, 0.125, 0.05, 0.25 / 6});
  CHECK_THAT(thrown([&] {
               (void)trainer.fit(points_loader(10),
                                 quiet({.rate_of_epoch = [](std::int64_t) { return -1.0; }}));
             }).what(),
             ContainsSubstring("rate_of_epoch returns is a number from 0 on"));
}

TEST_CASE("rates follow no epoch behind the last one", "[integration][fit]") {
  Trainer trainer = net_trainer();
  const std::vector<LabeledBatch> test{points(8, 2.0)};
  std::int64_t last = 0;
  const FitResult result = trainer.fit(points_loader(8),
                                       quiet({.epochs = 2,
                                              .validation = {.data = test, .every = 100},
                                              .rate_of_epoch = [&](std::int64_t epoch) {
                                                last = std::max(last, epoch);
                                                return 1.0;
                                              }}));
  CHECK(result.best);  // it has evaluated after the last update
  CHECK(last == 2);
}

TEST_CASE("FI-2: no step of an evaluation that threw is in progress", "[integration][fit]") {
  const auto instructions = std::make_shared<std::atomic<int>>(0);
  Trainer trainer = net_trainer(
      {.before_instruction = [instructions](Rank, const Instruction&) { ++*instructions; }});
  Points points_until_9;
  points_until_9.throws_at = 9;
  auto test = torch_data::make_data_loader<torch_data::samplers::SequentialSampler>(
      std::move(points_until_9).map(torch_data::transforms::Stack<>()), 4);
  CHECK_THROWS_WITH(trainer.fit(points_loader(8), quiet({.validation = {.data = test}})),
                    ContainsSubstring("no such file: 7.png"));
  const int then = *instructions;
  CHECK(trainer.loop_state());  // waits for steps in progress
  CHECK(*instructions == then);
}

TEST_CASE("FV-1: best value and improvement are judged apart, and no number is neither",
          "[integration][fit]") {
  const Validation how{.goal = Goal::Max, .min_delta = 0.5};
  WatchState state = after({}, std::nan(""), 1, how);
  CHECK_FALSE(state.best);
  CHECK(state.waited == 1);
  state = after(state, 1.0, 2, how);
  CHECK(state.best == 1.0);
  CHECK(state.waited == 0);
  state = after(state, 1.25, 3, how);  // best, but no improvement
  CHECK(state.best == 1.25);
  CHECK(state.best_step == 3);
  CHECK(state.waited == 1);
  state = after(state, 1.5, 4, how);  // not more than by min_delta
  CHECK(state.waited == 2);
  state = after(state, 1.75, 5, how);
  CHECK(state.mark == 1.75);
  CHECK(state.waited == 0);
  CHECK(state.rate_factor == 1.0);
  state.rate_factor = 0.5;
  CHECK(for_metric_of(how, state) == state);
  for (const Validation& other : {Validation{}, Validation{.watch = "f1", .goal = Goal::Max}}) {
    state = after(state, -3.0, 6, other);  // values of another metric say nothing of it
    CHECK(state.metric == other.watch);
    CHECK(state.best == -3.0);
    CHECK(state.mark == -3.0);
    CHECK(state.waited == 0);
    CHECK(state.rate_factor == 0.5);
    state = after(state, other.goal == Goal::Min ? -2.0 : -4.0, 7, other);
    CHECK(state.waited == 1);
  }
}

TEST_CASE("options of fit that contradict each other are refused", "[integration][fit]") {
  Trainer trainer = net_trainer();
  const std::vector<LabeledBatch> test{points(8)};
  const auto refused = [&](const FitOptions& options) {
    const Error error = thrown([&] { (void)trainer.fit(points_loader(8), quiet(options)); });
    CHECK(error.code() == Errc::UsageArgument);
    return std::string(error.what());
  };
  const auto validation = [&](Validation how) {
    how.data = test;
    return refused({.validation = std::move(how)});
  };
  CHECK_THAT(refused({.max_steps = 0}), ContainsSubstring("max_steps is at least 1, not 0"));
  CHECK_THAT(refused({.max_time = std::chrono::milliseconds(0)}), ContainsSubstring("max_time"));
  CHECK_THAT(refused({.validation = {.patience = 2}}), ContainsSubstring("no data to evaluate"));
  CHECK_THAT(refused({.validation = {.best_path = "x"}}), ContainsSubstring("no data to evaluate"));
  CHECK_THAT(validation({.every = -1}), ContainsSubstring("validation.every"));
  CHECK_THAT(validation({.watch = "accuracy"}), ContainsSubstring("not \"accuracy\""));
  CHECK_THAT(validation({.min_delta = 0.1}), ContainsSubstring("for patience and plateau"));
  CHECK_THAT(validation({.min_delta = -0.1, .patience = 2}), ContainsSubstring("from 0 on"));
  CHECK_THAT(validation({.patience = 0}), ContainsSubstring("patience is at least 1"));
  CHECK_THAT(validation({.plateau = Plateau{.factor = 1.0}}), ContainsSubstring("plateau.factor"));
  CHECK_THAT(validation({.plateau = Plateau{.patience = 0}}),
             ContainsSubstring("plateau.patience"));
  CHECK_THAT(validation({.plateau = Plateau{.least = 1.0}}), ContainsSubstring("plateau.least"));
  const Error unwritable = thrown([&] {
    (void)trainer.fit(points_loader(8),
                      quiet({.validation = {.data = test, .best_path = "/no/such/folder/b.ckpt"}}));
  });
  CHECK(unwritable.code() == Errc::UsageFile);
  CHECK(trainer.steps() == 0);
}

// ---- continuing -------------------------------------------------------------------------------

auto shuffled_loader(std::size_t batch_size) {
  return torch_data::make_data_loader<torch_data::samplers::RandomSampler>(
      Points().map(torch_data::transforms::Stack<>()), batch_size);
}

TEST_CASE("FI-3: a resumed fit makes the steps of the unbroken one, bit by bit",
          "[integration][fit][checkpoint]") {
  const int prefetch = GENERATE(0, 2);
  const std::int64_t every = GENERATE(0, 2);
  const std::int64_t saved_at = GENERATE(1, 3, 5, 12);
  const int accumulate = GENERATE(1, 2);
  CAPTURE(prefetch, every, saved_at, accumulate);
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a.ckpt";
  const std::vector<LabeledBatch> test{points(8, 2.0)};
  using Steps = std::map<std::int64_t, std::pair<double, double>>;
  using Evaluations = std::map<std::int64_t, double>;
  const auto run = [&](Trainer& trainer, bool resume, Steps& steps, Evaluations& evaluations) {
    auto loader = shuffled_loader(8);
    (void)trainer.fit(
        loader,
        quiet({.epochs = 5,
               .on_step =
                   [&](const FitStep& step) {
                     steps[step.step] = {step.mean_loss, step.learning_rate};
                     if (!resume && step.step == saved_at) {
                       trainer.save(path);
                     }
                   },
               .accumulate = accumulate,
               .prefetch = prefetch,
               .validation = {.data = test,
                              .every = every,
                              .min_delta = 10.0,
                              .plateau = Plateau{.factor = 0.5, .patience = 2},
                              .on_evaluation =
                                  [&](const FitEvaluation& found) {
                                    evaluations[found.step] = found.watched;
                                  }},
               .rate_of_epoch = [](std::int64_t epoch) { return 1.0 / double(epoch); },
               .resume = resume}));
  };
  if (accumulate == 2 && saved_at > 10) {
    return;  // it makes ten updates
  }
  Trainer unbroken = net_trainer();
  torch::manual_seed(11);
  Steps steps;
  Evaluations evaluations;
  run(unbroken, false, steps, evaluations);

  Trainer resumed = net_trainer();
  torch::manual_seed(99);
  resumed.load(path);
  const std::int64_t from = resumed.steps();
  CHECK(from >= saved_at);  // a step in progress is saved with it
  Steps again;
  Evaluations evaluated_again;
  run(resumed, true, again, evaluated_again);
  std::erase_if(steps, [&](const auto& step) { return step.first <= from; });
  std::erase_if(evaluations, [&](const auto& found) { return found.first < from; });
  CHECK(again == steps);
  CHECK(evaluated_again == evaluations);
  CHECK(same_bits(resumed.state_dict(), unbroken.state_dict()));
  CHECK(resumed.loop_state() == unbroken.loop_state());
}

TEST_CASE("resume begins at the beginning without a step, and needs the checkpoint of a loop else",
          "[integration][fit][checkpoint]") {
  Trainer trainer = net_trainer();
  CHECK_FALSE(trainer.loop_state());
  CHECK(trainer.fit(points_loader(8), quiet({.epochs = 2, .resume = true})).steps == 6);
  CHECK(trainer.fit(points_loader(8), quiet({.epochs = 2, .resume = true})).steps == 0);
  CHECK(trainer.fit(points_loader(8), quiet({.epochs = 3, .resume = true})).steps == 3);
  REQUIRE(trainer.loop_state());
  CHECK(trainer.loop_state()->epoch == 3);
  CHECK(trainer.loop_state()->batches == 3);
  const auto refused = [&](auto&& loader, std::int64_t epochs) {
    return std::string(thrown([&] {
                         (void)trainer.fit(loader, quiet({.epochs = epochs, .resume = true}));
                       }).what());
  };
  CHECK_THAT(refused(points_loader(8), 2), ContainsSubstring("continues in epoch 3"));
  CHECK_THAT(refused(std::vector{points(8)}, 3),
             ContainsSubstring("the loader has 1 batch in epoch 3, and the checkpoint was made "
                               "after batch 3"));
  const LabeledBatch batch = points(8);
  (void)trainer.step(batch.inputs, batch.labels).get();
  CHECK_FALSE(trainer.loop_state());
  CHECK_THAT(refused(points_loader(8), 9), ContainsSubstring("has no place in a loader"));
  CHECK_THAT(thrown([&] { trainer.set_loop_state(1, {.epoch = 0}); }).what(),
             ContainsSubstring("epochs count from 1"));
}

at::Tensor always_0(const at::Tensor& output, const at::Tensor& label) {
  return (output - label).abs().mean().mul(0.0);
}

TEST_CASE("the path of the best state is told only if the file there holds it",
          "[integration][fit][checkpoint]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/best.ckpt", last = folder.path() + "/last.ckpt";
  const std::string elsewhere = folder.path() + "/elsewhere.ckpt";
  const std::vector<LabeledBatch> test{points(8, 2.0)};
  const auto run = [&](Trainer& trainer, std::int64_t epochs, const std::string& best_path) {
    const FitResult result = trainer.fit(points_loader(8),
                                         quiet({.epochs = epochs,
                                                .validation = {.data = test,
                                                               .metrics = {{"zero", always_0}},
                                                               .watch = "zero",
                                                               .best_path = best_path},
                                                .resume = true}));
    REQUIRE(result.best);
    CHECK(result.best->step == 3);
    return result.best->path;
  };
  Trainer first = net_trainer();
  CHECK(run(first, 2, path) == path);
  first.save(last);
  Trainer resumed = net_trainer();
  resumed.load(last);
  CHECK(run(resumed, 3, elsewhere).empty());
  CHECK(run(resumed, 4, path) == path);
  resumed.save(path);  // of a later step
  CHECK(run(resumed, 5, path).empty());
}

TEST_CASE("a best state that could not be saved is found again", "[integration][fit][checkpoint]") {
  const TemporaryFolder folder;
  const std::string place = folder.path() + "/place", path = place + "/best.ckpt";
  std::filesystem::create_directory(place);
  const std::vector<LabeledBatch> test{points(8, 2.0)};
  Trainer trainer = net_trainer();
  const auto options = [&](bool resume) {
    return quiet({.on_step = [&](const FitStep&) { std::filesystem::remove_all(place); },
                  .validation = {.data = test, .best_path = path},
                  .resume = resume});
  };
  CHECK(thrown([&] { (void)trainer.fit(points_loader(8), options(false)); }).code() ==
        Errc::UsageFile);
  REQUIRE(trainer.loop_state());
  CHECK(trainer.loop_state()->batches == 3);
  CHECK_FALSE(trainer.loop_state()->watch.best);
  std::filesystem::create_directory(place);
  const FitResult result = trainer.fit(points_loader(8), options(true));
  CHECK(result.steps == 0);
  REQUIRE(result.best);
  CHECK(result.best->path == path);
  trainer.load(path);
  CHECK(trainer.steps() == 3);
}

TEST_CASE("resume makes the last evaluation if the run before did not",
          "[integration][fit][checkpoint]") {
  Trainer trainer = net_trainer();
  const std::vector<LabeledBatch> test{points(8, 2.0)};
  std::vector<std::int64_t> evaluated;
  const auto run = [&](bool resume) {
    return trainer.fit(points_loader(8),
                       quiet({.on_step = [](const FitStep& s) { return s.step < 3; },
                              .validation = {.data = test,
                                             .every = 100,
                                             .on_evaluation =
                                                 [&](const FitEvaluation& found) {
                                                   evaluated.push_back(found.step);
                                                 }},
                              .resume = resume}));
  };
  CHECK(run(false).end == FitEnd::OnStep);
  CHECK(evaluated.empty());
  CHECK(run(true).steps == 0);
  CHECK(evaluated == std::vector<std::int64_t>{3});
  CHECK(run(true).steps == 0);
  CHECK(evaluated.size() == 1);
}

TEST_CASE("resume with another metric or goal begins the search for the best anew",
          "[integration][fit][checkpoint]") {
  Trainer trainer = net_trainer();
  const std::vector<LabeledBatch> test{points(8, 2.0)};
  std::vector<double> found;
  const auto run = [&](std::int64_t epochs, Goal goal) {
    found.clear();
    return trainer.fit(
        points_loader(8),
        quiet({.epochs = epochs,
               .validation = {.data = test,
                              .goal = goal,
                              .on_evaluation =
                                  [&](const FitEvaluation& e) { found.push_back(e.watched); }},
               .resume = true}));
  };
  REQUIRE(run(3, Goal::Min).best);
  const FitResult result = run(5, Goal::Max);
  REQUIRE(result.best);
  CHECK(found.size() == 3);  // the checkpoint's state again, now as the first of this goal
  CHECK(result.best->value == std::ranges::max(found));
  REQUIRE(trainer.loop_state());
  CHECK(trainer.loop_state()->watch.metric == "loss");
  CHECK(trainer.loop_state()->watch.goal == Goal::Max);
}

TEST_CASE("a trainer with mirrors keeps the states of a loop to which recover() may go back",
          "[integration][fit]") {
  const bool mirror = GENERATE(false, true);
  Trainer trainer = net_trainer({.mirror = mirror, .outstanding = 2});
  for (std::int64_t steps = 0; steps <= 10; ++steps) {
    trainer.set_loop_state(steps, {.batches = steps});
  }
  CHECK(trainer.loop_state().has_value() == mirror);  // the one after no step
}

TEST_CASE("a checkpoint in memory with an impossible state of a loop is refused",
          "[integration][fit][checkpoint]") {
  Trainer trainer = net_trainer();
  (void)trainer.fit(points_loader(8), quiet({}));
  Checkpoint checkpoint = trainer.checkpoint();
  checkpoint.loop->watch.waited = 4;  // evaluations after three steps
  const Error error = thrown([&] { trainer.load(checkpoint); });
  CHECK(error.code() == Errc::CheckpointFormat);
  CHECK_THAT(error.what(), ContainsSubstring("no loop of 3 steps can have"));
  checkpoint.loop.reset();
  trainer.load(checkpoint);
  CHECK_FALSE(trainer.loop_state());
}

// ---- updates of several batches ---------------------------------------------------------------

struct Kind {
  ModelOptions model;
  std::string schedule = "1f1b";
  bool processes = false;
};

TEST_CASE("an update of several batches has the bits of one process", "[integration][accumulate]") {
  const Kind kind = GENERATE(Kind{{.stages = 2, .dropout = 0.2}},
                             Kind{{.stages = 4, .dropout = 0.2, .tied = true}, "own"},
                             Kind{{.stages = 4, .frozen = true}, "gpipe"},
                             Kind{{.stages = 2, .dropout = 0.2, .tied = true}, "1f1b", true});
  CAPTURE(kind.model.stages, kind.model.tied, kind.processes);
  const Program program = make_program(kind.model);
  const Schedule schedule = make_schedule(kind.schedule, program);
  const auto ranks = static_cast<int>(schedule.rows().size());
  const AdamW adam{.lr = kRate};
  Trainer trainer(kind.processes ? Cluster::spawn(ranks) : Cluster::local(ranks),
                  program,
                  schedule,
                  adam,
                  {.clip = 0.5, .seed = 5});
  Reference reference(program, adam, {.clip = 0.5, .seed = 5});
  for (std::int64_t update = 0; update < 2; ++update) {
    const StateDict weights = trainer.state_dict();
    std::vector<StepFuture> parts;
    for (std::int64_t b = 0; b < 2; ++b) {
      const Data batch = tests::data(3 * update + b);
      parts.push_back(trainer.accumulate(batch.inputs, batch.labels));
      CHECK(reference.accumulate(batch.inputs, batch.labels).losses == parts.back().get().losses);
    }
    // Between updates the state is the last update's, and evaluations disturb nothing.
    CHECK(parts.back().get().step == update);
    const Data batch = tests::data(3 * update + 2);
    (void)trainer.evaluate(batch.inputs, batch.labels);
    CHECK(same_bits(trainer.state_dict(), weights));
    const StepResult whole = trainer.step(batch.inputs, batch.labels).get();
    const ReferenceStep expected = reference.step(batch.inputs, batch.labels);
    CHECK(whole.step == update + 1);
    CHECK(whole.losses.size() == 3 * kMicrobatches);
    CHECK(whole.losses == expected.losses);
    CHECK(whole.mean_loss == expected.mean_loss);
    CHECK(testing::same_norm(whole.gradient_norm, expected.gradient_norm));
  }
  CHECK(same_bits(without_spare(weights_of(trainer)), weights_of(reference)));
}

TEST_CASE("an update of two batches is that of one of all their microbatches",
          "[integration][accumulate]") {
  const auto [x, y] = points(16);
  const auto half = [](const Batch& side, std::int64_t h) {
    return Batch{side[0].tensor.narrow(0, 8 * h, 8)};
  };
  Trainer twice = net_trainer();
  Trainer once(net_program(4), "1f1b", AdamW{.lr = kRate}, {.seed = 5});
  for (int step = 0; step < 2; ++step) {
    twice.accumulate(half(x, 0), half(y, 0));
    const StepResult two = twice.step(half(x, 1), half(y, 1)).get();
    const StepResult one = once.step(x, y).get();
    CHECK(two.losses == one.losses);  // AC-2: also with dropout
    CHECK(two.mean_loss == one.mean_loss);
    CHECK(two.gradient_norm == one.gradient_norm);
  }
  CHECK(same_bits(twice.state_dict(), once.state_dict()));
}

TEST_CASE("PT-2: batches of an update weigh by their samples", "[integration][accumulate]") {
  Trainer trainer = net_trainer();
  Reference reference(net_program(2), AdamW{.lr = kRate}, {.seed = 5});
  const std::vector<LabeledBatch> batches{points(3, 0.5), points(8), points(5, 1.0)};
  double sum = 0.0;
  for (const LabeledBatch& batch : batches) {
    const bool last = &batch == &batches.back();
    const auto rows = static_cast<double>(batch.inputs[0].tensor.size(0));
    const ReferenceStep expected = last ? reference.step(batch.inputs, batch.labels)
                                        : reference.accumulate(batch.inputs, batch.labels);
    const StepResult result = (last ? trainer.step(batch.inputs, batch.labels)
                                    : trainer.accumulate(batch.inputs, batch.labels))
                                  .get();
    CHECK(result.losses == expected.losses);
    CHECK(result.mean_loss == expected.mean_loss);
    if (!last) {
      sum += rows * result.mean_loss;
      continue;
    }
    // The parts have 2 and 1, 4 and 4, 3 and 2 rows.
    const double of_last = (3 * result.losses[4] + 2 * result.losses[5]) / 5;
    CHECK(result.mean_loss == Catch::Approx((sum + rows * of_last) / 16));
    CHECK(testing::same_norm(result.gradient_norm, expected.gradient_norm));
  }
  CHECK(same_bits(weights_of(trainer), weights_of(reference)));
}

/// Classifies the words of sentences, which are padded to one length.
struct Words : torch::nn::Module {
  torch::nn::Embedding in{register_module("in", torch::nn::Embedding(16, 8))};
  torch::nn::Linear out{register_module("out", torch::nn::Linear(8, 5))};

  torch::Tensor forward(torch::Tensor x) {
    const auto h = stage("first", [&] { return torch::tanh(in(x)); });
    return stage("second", [&] { return out(h); });
  }
};

constexpr std::int64_t kPadding = -100;  // what cross entropy leaves out

torch::Tensor mean_over_words(torch::Tensor output, torch::Tensor label) {
  return torch::cross_entropy_loss(output.flatten(0, 1), label.flatten());
}

double count_words(const std::vector<torch::Tensor>& labels) {
  return labels[0].ne(kPadding).sum().item<double>();
}

/// Returns sentences of 1 to 6 words.
LabeledBatch sentences(std::int64_t rows) {
  const auto x = torch::arange(rows * 6).mul(7).remainder(16).view({rows, 6});
  const auto y = torch::arange(rows * 6).mul(3).remainder(5).view({rows, 6});
  for (std::int64_t row = 0; row < rows; ++row) {
    y[row].narrow(0, row % 5 + 1, 5 - row % 5).fill_(kPadding);
  }
  return {{x}, {y}};
}

TEST_CASE("LM-1: losses that count by words have the mean over the words of an update",
          "[integration][accumulate]") {
  torch::manual_seed(3);
  const auto net = std::make_shared<Words>();
  const LabeledBatch a = sentences(8), b = sentences(7);
  const Program program = compile(
      net, {.inputs = a.inputs, .labels = a.labels, .loss = mean_over_words, .microbatches = 4});
  const Sgd sgd{.lr = 0.5};
  Trainer trainer(program, "1f1b", sgd, {.seed = 5, .loss_weight = count_words});
  Trainer by_samples(program, "1f1b", sgd, {.seed = 5});
  Reference reference(program, sgd, {.seed = 5, .loss_weight = count_words});
  const auto x = torch::cat({a.inputs[0].tensor, b.inputs[0].tensor});
  const auto y = torch::cat({a.labels[0].tensor, b.labels[0].tensor});
  const auto whole_loss = [&] { return mean_over_words(net->forward(x), y); };
  const std::vector<LabeledBatch> both{a, b};
  CHECK(trainer.evaluate(both).loss == Catch::Approx(whole_loss().item<double>()));
  CHECK(std::abs(by_samples.evaluate(both).loss - whole_loss().item<double>()) > 1e-4);

  torch::optim::SGD optimizer(net->parameters(), 0.5);
  for (int update = 0; update < 3; ++update) {
    CAPTURE(update);
    const auto loss = whole_loss();
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
    (void)trainer.accumulate(a.inputs, a.labels).get();
    (void)reference.accumulate(a.inputs, a.labels);
    const StepResult result = trainer.step(b.inputs, b.labels).get();
    const ReferenceStep expected = reference.step(b.inputs, b.labels);
    CHECK(result.mean_loss == Catch::Approx(loss.item<double>()));
    CHECK(result.losses == expected.losses);
    CHECK(result.mean_loss == expected.mean_loss);
  }
  CHECK(same_bits(weights_of(trainer), weights_of(reference)));
  const StateDict state = trainer.state_dict();
  const std::map<std::string, torch::Tensor> trained(state.begin(), state.end());
  for (const auto& parameter : net->named_parameters()) {
    CAPTURE(parameter.key());
    CHECK(torch::allclose(trained.at(parameter.key()), parameter.value(), 1e-5, 1e-6));
  }
}

TEST_CASE("equal weights of losses change no bit, and what is no weight is refused",
          "[integration][accumulate]") {
  const auto all_alike = [](const std::vector<torch::Tensor>&) { return 7.0; };
  Trainer plain = net_trainer();
  Trainer weighted = net_trainer({.loss_weight = all_alike});
  const LabeledBatch batch = points(8);
  for (Trainer* trainer : {&plain, &weighted}) {
    trainer->accumulate(batch.inputs, batch.labels);
    (void)trainer->step(batch.inputs, batch.labels).get();
  }
  CHECK(same_bits(plain.state_dict(), weighted.state_dict()));

  const double wrong = GENERATE(0.0, -1.0, std::nan(""));
  Trainer refusing =
      net_trainer({.loss_weight = [&](const std::vector<torch::Tensor>&) { return wrong; }});
  CHECK_THAT(thrown([&] { (void)refusing.step(batch.inputs, batch.labels); }).what(),
             ContainsSubstring("for microbatch 0, and a loss counts by a number above 0"));
  CHECK_THAT(thrown([&] { (void)refusing.step(LocalBatch{.source = "any"}); }).what(),
             ContainsSubstring("loss_weight reads the labels"));
  CHECK(refusing.steps() == 0);
}

TEST_CASE("replicas add up their own microbatches of all batches", "[integration][accumulate]") {
  const Program program = make_program({.stages = 2, .dropout = 0.2, .statistics = false});
  Trainer trainer(program, dualpipe(2, kMicrobatches), AdamW{.lr = kRate}, {.seed = 5});
  Reference reference(program, AdamW{.lr = kRate}, {.seed = 5});
  const Data a = tests::data(0), b = tests::data(1);
  trainer.accumulate(a.inputs, a.labels);
  (void)reference.accumulate(a.inputs, a.labels);
  const StepResult result = trainer.step(b.inputs, b.labels).get();
  const ReferenceStep expected = reference.step(b.inputs, b.labels);
  CHECK(result.losses == expected.losses);
  CHECK(result.gradient_norm == Catch::Approx(expected.gradient_norm).epsilon(1e-6));
}

TEST_CASE("AC-1: when a batch of an update fails nothing is changed and the others are dropped",
          "[integration][accumulate]") {
  const auto failing = std::make_shared<FailingRank>();
  const Program program = net_program(2);
  Trainer trainer(program,
                  "1f1b",
                  AdamW{.lr = kRate},
                  {.seed = 5, .mirror = true, .before_instruction = hook_of(failing)});
  Reference reference(program, AdamW{.lr = kRate}, {.seed = 5});
  const LabeledBatch a = points(8), b = points(8, 0.7);
  const auto both = [&] {
    trainer.accumulate(a.inputs, a.labels);
    return trainer.step(b.inputs, b.labels);
  };
  const auto expect = [&] {
    (void)reference.accumulate(a.inputs, a.labels);
    return reference.step(b.inputs, b.labels);
  };
  (void)both().get();
  (void)expect();
  const StateDict weights = trainer.state_dict();
  const auto unchanged = [&] { return same_bits(trainer.state_dict(), weights); };
  SECTION("in its last batch") {
    failing->fail_at(first(trainer.plan(), Rank(1), Op::Vote));
    CHECK_THROWS_WITH(both().get(), ContainsSubstring("injected failure"));
    CHECK(unchanged());
  }
  SECTION("in an earlier one: those behind it fail, until the update is over") {
    failing->fail_at(first(trainer.plan(), Rank(1), Op::Accumulate));
    const StepFuture failed = trainer.accumulate(a.inputs, a.labels);
    const StepFuture behind = trainer.accumulate(b.inputs, b.labels);
    const StepFuture last = trainer.step(b.inputs, b.labels);
    CHECK_THROWS_WITH(failed.get(), ContainsSubstring("injected failure"));
    for (const StepFuture& future : {behind, last}) {
      CHECK_THROWS_WITH(future.get(),
                        ContainsSubstring("an earlier batch of this update has failed") &&
                            ContainsSubstring("injected failure"));
    }
    CHECK(unchanged());
  }
  SECTION("in an earlier one, behind others: the ranks give these up") {
    (void)trainer.accumulate(a.inputs, a.labels).get();
    failing->fail_at(first(trainer.plan(), Rank(0), Op::Accumulate));
    CHECK_THROWS_AS((void)trainer.accumulate(b.inputs, b.labels).get(), Error);
    CHECK(unchanged());
    (void)trainer.evaluate(a.inputs, a.labels);
    CHECK(unchanged());
    trainer.drop_accumulated();
  }
  SECTION("because its loss is not finite") {
    const Batch infinite{torch::full({8, 1}, 1e30)};
    CHECK(thrown([&] { (void)trainer.accumulate(a.inputs, infinite).get(); }).code() ==
          Errc::NonFinite);
    trainer.drop_accumulated();
    CHECK(unchanged());
  }
  SECTION("and when the caller drops them, or takes another state") {
    (void)trainer.accumulate(a.inputs, a.labels).get();
    trainer.drop_accumulated();
    CHECK(unchanged());
    (void)trainer.accumulate(a.inputs, a.labels).get();
    CHECK(trainer.recover() == 1);
    CHECK(unchanged());
  }
  CHECK(both().get().losses == expect().losses);
  CHECK(same_bits(weights_of(trainer), weights_of(reference)));
}

TEST_CASE("a schedule may be given by its name", "[integration][trainer]") {
  const Program program = make_program({.stages = 4});
  const auto refused = [&](const char* name, Errc code) {
    const Error error = thrown([&] { Trainer trainer(program, name, AdamW{}); });
    CHECK(error.code() == code);
    return std::string(error.what());
  };
  CHECK(Trainer(program, "zb-v", AdamW{}).plan().ranks.size() == 2);
  CHECK(Trainer(program, "dag-1f1b", AdamW{}).plan().ranks.size() == 4);
  CHECK(Trainer(program, make_schedule("own", program), AdamW{}).plan().ranks.size() == 2);
  CHECK_THAT(refused("1f1v", Errc::UsageArgument), ContainsSubstring("did you mean 1f1b?"));
}

}  // namespace
}  // namespace stagecraft::tests
