/// Tests copies that divide the experts of a region and exchange their samples (shard): they train
/// like copies that do not, up to rounding.
#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <initializer_list>
#include <map>
#include <memory>
#include <random>
#include <utility>

#include <torch/torch.h>

#include "stagecraft/actors/executor/optimizer/optimizer_registry.h"
#include "stagecraft/compiler/graph/autocast_guard.h"
#include "stagecraft/compiler/native/count.h"
#include "stagecraft/scheduler/builders/gpipe.h"
#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/tests/integration/failing_rank.h"
#include "stagecraft/tests/integration/models.h"
#include "stagecraft/tests/integration/trained_copies.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/error_of.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft::tests::experts {
namespace {

using Catch::Matchers::ContainsSubstring;

/// Rounding alone changes a weight by so much in a few steps.
constexpr double kBound = 1e-5;
/// That of --verify. Where a gradient is nearly zero, AdamW moves the weight by its rounding.
constexpr double kWeightBound = 1e-4;

constexpr ModelOptions kExperts{
    .stages = 2, .dropout = 0.2, .statistics = false, .width = 16, .experts = 4};

ModelOptions of_stages(int stages) {
  ModelOptions model = kExperts;
  model.stages = stages;
  return model;
}

struct Way {
  std::string builder = "1f1b";
  int devices = 2;
  int copies = 2;
  ReplicateOptions sums = {};
  std::string divided = "EP";
  int parts = 0;  // as in make_execution
};

Execution in_copies_of(const Program& program, const Way& way) {
  const Schedule rows = build_schedule(
      way.builder, {.devices = way.devices, .microbatches = kMicrobatches / way.copies});
  return make_execution(program, in_copies(rows, way.copies), way.sums, way.divided, way.parts);
}

/// Returns the largest difference, relative to the larger of 1 and the value; infinite if names or
/// shapes differ.
double distance(const StateDict& a, const StateDict& b) {
  if (a.size() != b.size()) {
    UNSCOPED_INFO(a.size() << " and " << b.size() << " tensors");
    return INFINITY;
  }
  double largest = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto& [name, x] = a[i];
    const auto& [other, y] = b[i];
    if (name != other || x.sizes() != y.sizes()) {
      UNSCOPED_INFO(name << " " << x.sizes() << " and " << other << " " << y.sizes());
      return INFINITY;
    }
    const at::Tensor apart = (x - y).abs() / y.abs().clamp_min(1.0);
    largest = std::max(largest, apart.numel() == 0 ? 0.0 : apart.max().item().toDouble());
  }
  return largest;
}

StateDict sorted(StateDict dict) {
  std::ranges::sort(dict, {}, [](const auto& named) { return named.first; });
  return dict;
}

StateDict as_dict(const TensorsByName& tensors) {
  return {tensors.begin(), tensors.end()};
}

void check_close(TrainedCopies& divided, TrainedCopies& whole, double bound = kBound) {
  const TemporaryFolder folder;
  CHECK_THAT(divided.last.mean_loss, Catch::Matchers::WithinAbs(whole.last.mean_loss, bound));
  CHECK_THAT(divided.last.gradient_norm,
             Catch::Matchers::WithinRel(whole.last.gradient_norm, bound));
  CHECK(distance(as_dict(tensors_saved_by(divided.trainer, folder.path() + "/divided")),
                 as_dict(tensors_saved_by(whole.trainer, folder.path() + "/whole"))) <=
        std::max(bound, kWeightBound));
}

// ---- training -----------------------------------------------------------------------------------

TEST_CASE("ranks that divide experts train like one process", "[integration][experts]") {
  const auto [builder, devices, copies, parts, stages] =
      GENERATE(table<std::string, int, int, int, int>({{"1f1b", 2, 2, 2, 2},
                                                       {"gpipe", 1, 4, 4, 1},
                                                       {"gpipe", 1, 4, 2, 1},
                                                       {"gpipe", 2, 2, 2, 2},
                                                       {"zb-h1", 2, 2, 2, 2},
                                                       {"1f1b", 2, 4, 2, 2},
                                                       {"interleaved", 2, 2, 2, 4},
                                                       {"zb-v", 2, 2, 2, 4}}));
  // Parts around the regions, parts inside of them, and whole stages are cut at their borders.
  const auto recompute = GENERATE(std::vector<std::string>(),
                                  std::vector<std::string>{"EP"},
                                  std::vector<std::string>{"experts0", "experts1.gate", "layer2"},
                                  std::vector<std::string>{"experts1.up", "experts3.down"},
                                  std::vector<std::string>{"part0"});
  ModelOptions model = of_stages(stages);
  model.recomputed = recompute;
  const Program program = make_program(model);
  CAPTURE(builder, copies, parts, recompute);
  TrainedCopies divided(in_copies_of(
      program, {.builder = builder, .devices = devices, .copies = copies, .parts = parts}));
  divided.train(4);
  Reference reference(program, AdamW{.lr = 1e-2}, {.clip = 0.1, .seed = 9});
  ReferenceStep last;
  for (std::int64_t step = 0; step < 4; ++step) {
    const Data batch = data(step);
    last = reference.step(batch.inputs, batch.labels);
  }
  CHECK_THAT(divided.last.mean_loss, Catch::Matchers::WithinAbs(last.mean_loss, kBound));
  CHECK_THAT(divided.last.gradient_norm, Catch::Matchers::WithinRel(last.gradient_norm, kBound));
  StateDict weights = weights_of(divided.trainer);
  std::erase_if(weights, [](const auto& w) { return w.first.starts_with("norm."); });  // unused
  CHECK(distance(weights, weights_of(reference)) <= kWeightBound);
}

TEST_CASE("every optimizer, with groups, kept gradients and two threads, updates parts of experts",
          "[integration][experts]") {
  const Program program = make_program(kExperts);
  const TrainerOptions options{
      .groups = {{.match = "experts0.*", .frozen = true},
                 {.match = "*.bias", .lr = 3e-2, .weight_decay = 0.0},
                 {.match = "experts?.up", .lr_scale = 0.5}},
      .clip = 0.1,
      .keep_gradients = true,
      .seed = 9,
      .threads_per_worker = 2,
  };
  for (const OptimizerInfo& info : kOptimizers) {
    CAPTURE(info.name);
    Optimizer optimizer = optimizer_named(info.name).value();
    for (const auto& [setting, value] :
         {std::pair("lr", 1e-2), std::pair("weight_decay", 0.1), std::pair("momentum", 0.5)}) {
      (void)set_setting(optimizer, setting, value);  // of those that have it
    }
    TrainedCopies divided(in_copies_of(program, {}), optimizer, options);
    TrainedCopies whole(in_copies_of(program, {.divided = ""}), optimizer, options);
    divided.train(2);
    whole.train(2);
    // RMSprop and Adagrad divide by the root of tiny squares, which makes more of rounding.
    check_close(divided, whole, 1e-3);
    CHECK(distance(divided.trainer.gradients(), whole.trainer.gradients()) <= kBound);
  }
}

TEST_CASE("experts in worker processes, over several batches an update, and by task",
          "[integration][experts][processes]") {
  const Program program = make_program(kExperts);
  TrainedCopies whole(in_copies_of(program, {.divided = ""}));
  const auto train = [](TrainedCopies& run) {
    for (std::int64_t step = 0; step < 3; ++step) {
      const Data first = data(2 * step);
      run.trainer.accumulate(first.inputs, first.labels);
      const Data second = data(2 * step + 1);
      run.last = run.trainer.step(second.inputs, second.labels).get();
    }
  };
  train(whole);
  SECTION("processes") {
    TrainedCopies divided(
        in_copies_of(program, {}), AdamW{.lr = 1e-2}, {.clip = 0.1, .seed = 9}, [](int ranks) {
          return Cluster::spawn(ranks);
        });
    train(divided);
    check_close(divided, whole);
  }
  SECTION("by task") {
    TrainedCopies divided(in_copies_of(program, {}),
                          AdamW{.lr = 1e-2},
                          {.clip = 0.1, .seed = 9, .dispatch = Dispatch::PerTask});
    train(divided);
    check_close(divided, whole);
  }
}

TEST_CASE("a step that is skipped leaves parts of experts as they are",
          "[integration][experts][loss-scale]") {
  const Program program = [] {
    const AutocastGuard autocast;
    AutocastGuard::set({.enabled = true, .dtype = at::kHalf});
    return make_program(kExperts);
  }();
  TrainedCopies divided(
      in_copies_of(program, {}),
      AdamW{.lr = 1e-2},
      {.clip = 0.1,
       .loss_scaling = LossScaling{.initial = 0x1p20, .growth_interval = 2},  // too large at first
       .seed = 9});
  int skipped = 0, made = 0;
  for (std::int64_t step = 0; step < 12; ++step) {
    const StateDict before = divided.trainer.state_dict();
    divided.train(step + 1);
    ++(divided.last.skipped ? skipped : made);
    CHECK(divided.last.skipped == same_bits(divided.trainer.state_dict(), before));
  }
  CHECK(skipped > 0);
  CHECK(made > 0);
}

TEST_CASE("evaluations use the experts of all ranks, between steps", "[integration][experts]") {
  const Program program = make_program(kExperts);
  TrainedCopies divided(in_copies_of(program, {}));
  TrainedCopies whole(in_copies_of(program, {.divided = ""}));
  const Data batch = data(7);
  for (std::int64_t steps = 1; steps < 3; ++steps) {
    divided.train(steps);
    whole.train(steps);
    CHECK_THAT(
        divided.trainer.evaluate(batch.inputs, batch.labels),
        Catch::Matchers::WithinAbs(whole.trainer.evaluate(batch.inputs, batch.labels), kBound));
  }
  divided.train(4);
  whole.train(4);
  check_close(divided, whole);
}

TEST_CASE("each rank holds a part of the experts and of their optimizer's state",
          "[integration][experts]") {
  const Program program = make_program(kExperts);
  TrainedCopies divided(in_copies_of(program, {}));
  const Plan& plan = divided.trainer.plan();
  const auto groups =
      std::ranges::count(plan.tables.groups, PlanGroup::Kind::Divided, &PlanGroup::kind);
  CHECK(groups == 4);  // one for each layer
  for (std::size_t g = 0; g < plan.tables.groups.size(); ++g) {
    const PlanGroup& group = plan.tables.groups[g];
    for (const RankPlan& rank : plan.ranks) {
      const bool member = !group.members(rank.rank).empty();
      const auto exchanges =
          std::ranges::count_if(plan.list_of(rank.rank).instructions, [&](const Instruction& i) {
            return is_exchange(i) && i.op == Op::Start && i.group == static_cast<std::int32_t>(g);
          });
      const bool is_divided = group.kind == PlanGroup::Kind::Divided;
      CHECK(exchanges == (member && is_divided ? 4 * kMicrobatches / 2 : 0));
    }
  }
}

/// The router does not train, so the divided experts are the first weights of the stage; batch
/// statistics come before them.
struct LateSums : torch::nn::Module {
  LateSums() {
    norm = register_module("norm",
                           torch::nn::BatchNorm1d(torch::nn::BatchNorm1dOptions(8).affine(false)));
    weights = register_parameter("weights", torch::randn({4, 8, 8}));
    head = register_module("head", torch::nn::Linear(8, 8));
  }
  torch::Tensor forward(const torch::Tensor& x) {
    const torch::Tensor in = norm(x).unsqueeze(0).expand({4, -1, -1}).contiguous();
    return head(region("EP", [&] { return torch::bmm(in, weights); }).sum(0));
  }
  torch::nn::BatchNorm1d norm{nullptr};
  torch::Tensor weights;
  torch::nn::Linear head{nullptr};
};

TEST_CASE("copies keep their buffers equal beside divided experts", "[integration][experts]") {
  const torch::Tensor x = torch::randn({16, 8});
  std::vector<StateDict> ends;
  for (const int parts : {2, 4, 0}) {  // 0: none
    torch::manual_seed(2);
    LateSums module;
    const Program program = compile(
        module,
        {.inputs = {x},
         .labels = {x},
         .loss = [](const at::Tensor& y, const at::Tensor& t) { return torch::mse_loss(y, t); },
         .microbatches = 4});
    const Execution execution =
        make_execution(program, in_copies(gpipe(1, 1), 4), {}, parts > 0 ? "EP" : "", parts);
    const Cluster cluster = Cluster::local(4);
    Trainer trainer(cluster, execution, Sgd{.lr = 1e-2}, {.seed = 9});
    (void)trainer.step({x}, {x}).get();
    (void)trainer.step({x * 2}, {x}).get();
    ends.push_back(sorted(trainer.state_dict()));
  }
  CHECK(distance(ends[0], ends[2]) <= kBound);
  CHECK(distance(ends[1], ends[2]) <= kBound);
}

// ---- microbatches of other sizes and weights ----------------------------------------------------

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

// ---- checkpoints --------------------------------------------------------------------------------

/// A way to cut, copy, divide and share.
Way drawn_way(std::mt19937& random) {
  const auto one_of = [&](std::initializer_list<int> all) {
    return *(all.begin() + static_cast<std::ptrdiff_t>(random() % all.size()));
  };
  Way way{.builder = "1f1b", .devices = one_of({1, 2, 4}), .copies = one_of({1, 2, 4})};
  way.divided = way.copies > 1 && one_of({0, 1, 1}) == 1 ? "EP" : "";
  way.parts = one_of({0, 2});
  const int level = way.copies > 1 ? one_of({0, 1, 2, 3}) : 0;
  way.sums = {
      .shard_optimizer = level == 1, .shard_gradients = level == 2, .shard_parameters = level == 3};
  if (level > 1) {
    way.sums.bucket_bytes = 4000;
  }
  return way;
}

TEST_CASE(
    "random pairs of cuts, copies, divided experts and levels of sharing read each other's "
    "checkpoints",
    "[integration][experts][checkpoint]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a.ckpt";
  std::map<int, Program> programs;
  for (const int stages : {1, 2, 4}) {
    programs.emplace(stages, make_program(of_stages(stages)));
  }
  std::mt19937 random(35);
  for (int pair = 0; pair < 12; ++pair) {
    const Way writes = drawn_way(random), reads = drawn_way(random);
    CAPTURE(pair,
            writes.devices,
            writes.copies,
            writes.divided,
            writes.parts,
            static_cast<int>(writes.sums.sharing()),
            reads.devices,
            reads.copies,
            reads.divided,
            reads.parts,
            static_cast<int>(reads.sums.sharing()));
    TrainedCopies writer(in_copies_of(programs.at(writes.devices), writes));
    writer.train(2);
    const TensorsByName saved = tensors_saved_by(writer.trainer, path);
    TrainedCopies reader(in_copies_of(programs.at(reads.devices), reads));
    reader.trainer.load(path);
    CHECK(reader.trainer.steps() == 2);
    CHECK(equal(tensors_saved_by(reader.trainer, folder.path() + "/b.ckpt"), saved));
    reader.train(4);
    writer.train(4);
    check_close(reader, writer);
  }
}

// ---- failures, and what is refused --------------------------------------------------------------

TEST_CASE("a rank that fails in an exchange ends the step, and the next one is whole",
          "[integration][experts][failure]") {
  const Program program = make_program(kExperts);
  const auto failing = std::make_shared<FailingRank>();
  TrainedCopies divided(in_copies_of(program, {}),
                        AdamW{.lr = 1e-2},
                        {.clip = 0.1, .seed = 9, .before_instruction = hook_of(failing)});
  TrainedCopies whole(in_copies_of(program, {.divided = ""}));
  divided.train(1);
  const StateDict before = divided.trainer.state_dict();
  const auto& list = divided.trainer.plan().list_of(Rank(2)).instructions;
  const Op op = GENERATE(Op::Start, Op::Finish);
  const bool returns = GENERATE(false, true);
  const auto kind = GENERATE(CellKind::Forward, CellKind::Backward);
  const auto found = std::ranges::find_if(list, [&](const Instruction& i) {
    return i.op == op && is_exchange(i) && i.returns == returns && i.task.kind == kind;
  });
  REQUIRE(found != list.end());
  failing->fail_at({Rank(2), found->id});
  const Error error = error_of(step_of(divided.trainer, 1));
  CHECK(error.context().rank == Rank(2));
  CHECK(error.context().stage == found->task.stage);
  CHECK(same_bits(divided.trainer.state_dict(), before));
  divided.train(3);
  whole.train(3);
  check_close(divided, whole);
}

TEST_CASE("a lost rank's experts come from its mirror, and without one no copy has them",
          "[integration][experts][processes][recovery]") {
  const bool mirror = GENERATE(true, false);
  const Program program = make_program(kExperts);
  TrainedCopies divided(in_copies_of(program, {}),
                        AdamW{.lr = 1e-2},
                        {.clip = 0.1, .seed = 9, .mirror = mirror},
                        [](int ranks) { return Cluster::spawn(ranks); });
  divided.train(2);
  REQUIRE(kill(static_cast<pid_t>(divided.cluster.workers()[3].process), SIGKILL) == 0);
  CHECK(error_of(step_of(divided.trainer, 2)).code() == Errc::WorkerLost);
  divided.cluster.replace(Rank(3));
  if (!mirror) {
    CHECK_THAT(refusal([&] { (void)divided.trainer.recover(); }, Errc::WorkerLost),
               ContainsSubstring("no rank has") && ContainsSubstring("load a checkpoint"));
    return;
  }
  CHECK(divided.trainer.recover() >= 1);
  divided.train(4);
  TrainedCopies whole(in_copies_of(program, {.divided = ""}));
  whole.train(4);
  check_close(divided, whole);
}

TEST_CASE("a lost rank's experts come from a copy of its part",
          "[integration][experts][processes][recovery]") {
  const Program program = make_program(of_stages(1));
  const Way way{.builder = "gpipe", .devices = 1, .copies = 4, .parts = 2};
  TrainedCopies divided(
      in_copies_of(program, way), AdamW{.lr = 1e-2}, {.clip = 0.1, .seed = 9}, [](int ranks) {
        return Cluster::spawn(ranks);
      });
  divided.train(2);
  REQUIRE(kill(static_cast<pid_t>(divided.cluster.workers()[3].process), SIGKILL) == 0);
  CHECK(error_of(step_of(divided.trainer, 2)).code() == Errc::WorkerLost);
  divided.cluster.replace(Rank(3));
  CHECK(divided.trainer.recover() >= 1);
  divided.train(4);
  TrainedCopies whole(in_copies_of(program, {.builder = "gpipe", .devices = 1, .divided = ""}));
  whole.train(4);
  check_close(divided, whole);
}

TEST_CASE("what cannot divide experts is refused", "[integration][experts][bad-input]") {
  const Program program = make_program(kExperts);
  CHECK_THAT(
      refusal([&] { (void)in_copies_of(program, {.divided = "XP"}); }, Errc::ScheduleInvalid),
      ContainsSubstring("the model has no region XP"));
  CHECK_THAT(refusal([&] { (void)in_copies_of(program, {.builder = "chimera", .copies = 1}); },
                     Errc::ScheduleInvalid),
             ContainsSubstring("one rank divides nothing"));
  const CustomOptimizer own{.name = "own", .update = [](const CustomUpdate&) {}};
  CHECK_THAT(refusal([&] { TrainedCopies run(in_copies_of(program, {}), own); }),
             ContainsSubstring("an optimizer of your own updates whole parameters"));
  TrainerOptions decided;
  decided.dispatch = Dispatch::Decided;
  decided.decide = [](const Schedule&, const DispatchedColumn&) { return std::vector<Task>(); };
  CHECK_THAT(refusal([&] { TrainedCopies run(in_copies_of(program, {}), AdamW{}, decided); }),
             ContainsSubstring("exchange samples in the order of their tasks"));
}

}  // namespace
}  // namespace stagecraft::tests::experts
