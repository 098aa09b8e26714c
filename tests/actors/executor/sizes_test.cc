/// Runs stages that take microbatches of different sizes: they give the bits of one process that
/// computes every stage on the same microbatches, and within rounding the results of one size for
/// all.
#include <torch/torch.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/program/check.h"
#include "stagecraft/compiler/stage/recompute.h"
#include "stagecraft/scheduler/builders/bidirectional/chimera.h"
#include "stagecraft/scheduler/builders/gpipe.h"
#include "stagecraft/scheduler/builders/kfkb.h"
#include "stagecraft/scheduler/simulate/simulate.h"
#include "stagecraft/tests/actors/executor/pipeline.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/modules.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using testing::differing;
using testing::Pipeline;

constexpr int kSizedMicrobatches = 12;
constexpr int kRows = 24;  // of the batch: two per microbatch
const Optimizer kSizedOptimizer = Sgd{.lr = 0.1, .momentum = 0.9};

struct Compiled {
  Batch inputs, labels;
  Program program;
};

/// Keeps a shared module alive with the program, which captures it for each size.
template <class Module>
Compiled compiled(const std::shared_ptr<Module>& module,
                  std::vector<std::int64_t> widths = {8},
                  int made = 8,
                  const Recompute& recompute = {}) {
  Batch inputs;
  for (const std::int64_t width : widths) {
    inputs.emplace_back(torch::randn({kRows, width}));
  }
  const Batch labels{torch::randn({kRows, made})};
  return {inputs,
          labels,
          compile(module,
                  {.inputs = inputs,
                   .labels = labels,
                   .loss = testing::mean_square,
                   .microbatches = kSizedMicrobatches,
                   .recompute = recompute})};
}

StageGraph sized(const Program& program, const std::vector<int>& sizes) {
  StageGraph graph = program.stage_graph();
  graph.set_microbatch_sizes(sizes);
  return graph;
}

void require_no_errors(const Pipeline::Outcome& outcome) {
  for (const auto& error : outcome.errors) {
    INFO((error ? error->what() : ""));
    REQUIRE_FALSE(error.has_value());
  }
}

/// Compares two steps of the schedule with one process on the same sizes and on one size.
void check_run(const Compiled& of, const Schedule& schedule, bool all_alike = true) {
  const StageGraph graph = schedule.stage_graph();
  check(of.program, schedule).or_throw();
  Pipeline pipeline(
      of.program, schedule, {.optimizer = kSizedOptimizer, .clip = 1.0, .record_timeline = true});
  Reference same(
      resize(of.program, graph.microbatch_sizes()), kSizedOptimizer, {.clip = 1.0, .seed = 5});
  Reference one_size(of.program, kSizedOptimizer, {.clip = 1.0, .seed = 5});
  for (int step = 0; step < 2; ++step) {
    const auto outcome = pipeline.step(of.inputs, of.labels);
    require_no_errors(outcome);
    const ReferenceStep expected = same.step(of.inputs, of.labels);
    CHECK(outcome.losses == expected.losses);
    CHECK(testing::same_norm(outcome.reports[0].gradient_norm, expected.gradient_norm));
    const ReferenceStep uniform = one_size.step(of.inputs, of.labels);
    if (all_alike) {
      CHECK(expected.mean_loss == Catch::Approx(uniform.mean_loss).epsilon(1e-5));
      CHECK(expected.gradient_norm == Catch::Approx(uniform.gradient_norm).epsilon(1e-4));
    }
    for (int rank = 0; rank < pipeline.layout().ranks(); ++rank) {
      INFO("rank " << rank);
      CHECK(outcome.reports[static_cast<std::size_t>(rank)].times.peak_in_flight ==
            peak_in_flight(schedule.rows()[static_cast<std::size_t>(rank)],
                           of.program.stage_graph()));
    }
    CHECK(testing::held_at_end(outcome) == 0);
  }
  const auto found = pipeline.state();
  CHECK((differing(found, same.state()) == std::vector<std::string>{}));
  for (const StateTensor& expected : one_size.state()) {
    INFO(expected.name);
    CHECK(
        (!all_alike ||
         torch::allclose(found.at(expected.name), expected.tensor, /*rtol=*/1e-4, /*atol=*/1e-6)));
  }
}

void check_sizes(const Compiled& of, const std::vector<int>& sizes, bool all_alike = true) {
  CAPTURE(sizes);
  const StageGraph graph = sized(of.program, sizes);
  check_run(of, kfkb(graph, kSizedMicrobatches, {1}), all_alike);
  check_run(of, gpipe(graph, kSizedMicrobatches), all_alike);
}

TEST_CASE("two stages of different sizes train as one process does", "[executor][sizes]") {
  torch::manual_seed(31);
  const Compiled chain = compiled(std::make_shared<testing::Chain>(2));
  check_sizes(chain, {1, 2});
  check_sizes(chain, {2, 1});
  check_sizes(chain, {1, 12});
  check_sizes(chain, {2, 3});  // neither size divides the other
  check_sizes(chain, {2, 2});
}

TEST_CASE("sizes may grow and shrink along a chain", "[executor][sizes]") {
  torch::manual_seed(32);
  const Compiled chain = compiled(std::make_shared<testing::Chain>(3));
  check_sizes(chain, {1, 2, 4});
  check_sizes(chain, {4, 2, 1});
  check_sizes(chain, {1, 4, 1});
  check_sizes(chain, {3, 1, 2});
}

TEST_CASE("groups of k microbatches of any size train as one process does", "[executor][sizes]") {
  torch::manual_seed(33);
  const Compiled chain = compiled(std::make_shared<testing::Chain>(3));
  check_run(chain, kfkb(sized(chain.program, {1, 2, 1}), kSizedMicrobatches, {2, 3, 4}));
}

TEST_CASE("stages that several of other sizes read have all gradients", "[executor][sizes]") {
  torch::manual_seed(34);
  const Compiled skip = compiled(std::make_shared<testing::SkipNet>(), {6}, 3);
  check_sizes(skip, {1, 2, 4});
  check_sizes(skip, {4, 1, 2});
  const Compiled towers = compiled(std::make_shared<testing::TwoTowers>(), {6, 5}, 3);
  check_sizes(towers, {1, 2, 4});
  check_sizes(towers, {2, 1, 1});
}

TEST_CASE("tied parameters add the gradients of microbatches of other sizes", "[executor][sizes]") {
  torch::manual_seed(35);
  check_sizes(compiled(std::make_shared<testing::TiedChain>(3)), {1, 2, 3});
}

TEST_CASE("a plan regroups what crosses between sizes, and what the driver sends",
          "[plan][sizes]") {
  torch::manual_seed(41);
  const Compiled chain = compiled(std::make_shared<testing::Chain>(2));
  const Schedule schedule = kfkb(sized(chain.program, {1, 2}), kSizedMicrobatches, {1});
  Plan plan = lower_schedule(
      resize(chain.program, {1, 2}), schedule, Layout::of(schedule), /*training=*/true);
  CHECK(plan.tables.microbatches == kSizedMicrobatches);
  CHECK(plan.tables.losses == kSizedMicrobatches / 2);
  std::vector<int> joints(2), cuts(2);
  for (std::size_t r = 0; r < 2; ++r) {
    for (const Instruction& i : plan.list_of(Rank(r)).instructions) {
      if (i.op == Op::Regroup) {
        ++(i.reads.size() > 1 || i.rows.front() == RowRange{} ? joints : cuts)[r];
      }
    }
  }
  CHECK(joints == std::vector{24, 12});  // mostly of one part: activations out, gradients in
  CHECK(cuts == std::vector{0, 12});     // gradients out
  std::vector<Instruction>& second =
      plan.lists[static_cast<std::size_t>(plan.ranks[1].list)].instructions;
  const auto regroup = std::ranges::find(second, Op::Regroup, &Instruction::op);
  CHECK_THAT(to_string(*regroup), ContainsSubstring("regroup 1F0 rows 0-1/1,0-1/1 reads"));
  CHECK(verify(plan).empty());
  regroup->rows.front() = {.first = 1, .count = 1, .of = 1};
  CHECK_THAT(verify(plan).front(), ContainsSubstring("P-9"));
}

/// Draws random numbers, and keeps statistics of its inputs.
struct Moody : torch::nn::Module {
  torch::nn::Linear a{nullptr}, b{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
  Moody() {
    a = register_module("a", torch::nn::Linear(8, 8));
    norm = register_module("norm", torch::nn::BatchNorm1d(8));
    b = register_module("b", torch::nn::Linear(8, 8));
  }
  torch::Tensor forward(torch::Tensor x) {
    x = stage("a", [&] { return torch::dropout(norm(a(x)), 0.3, is_training()); });
    return stage("b", [&] { return torch::dropout(b(x), 0.2, is_training()); });
  }
};

TEST_CASE("random operators and running statistics are those of a stage's own microbatches",
          "[executor][sizes]") {
  torch::manual_seed(36);
  const Compiled moody = compiled(std::make_shared<Moody>());
  check_sizes(moody, {2, 1}, /*all_alike=*/false);
  check_sizes(moody, {1, 3}, /*all_alike=*/false);
}

TEST_CASE("stages of different sizes are recomputed with the bits of those that keep all",
          "[executor][sizes][recompute]") {
  const std::vector<int> sizes = GENERATE(std::vector{2, 1}, std::vector{1, 3});
  const auto made = [&](const Recompute& recompute) {
    torch::manual_seed(38);  // the same weights, inputs and random numbers each time
    return compiled(std::make_shared<Moody>(), {8}, 8, recompute);
  };
  const Compiled kept = made({});
  const Compiled again = made(Recompute::stages());
  for (const StageProgram& stage : resize(again.program, sizes).compiled().partition.stages) {
    CHECK(stage.recomputes());
  }
  check_sizes(again, sizes, /*all_alike=*/false);
  const Schedule schedule = kfkb(sized(kept.program, sizes), kSizedMicrobatches, {1});
  Pipeline keeping(kept.program, schedule, {.optimizer = kSizedOptimizer});
  Pipeline recomputing(again.program, schedule, {.optimizer = kSizedOptimizer});
  for (int step = 0; step < 2; ++step) {
    const auto expected = keeping.step(kept.inputs, kept.labels);
    const auto found = recomputing.step(again.inputs, again.labels);
    require_no_errors(found);
    CHECK(found.losses == expected.losses);
  }
  const auto expected = keeping.state();
  for (const auto& [name, tensor] : recomputing.state()) {
    INFO(name);
    CHECK(torch::equal(tensor, expected.at(name)));
  }
}

/// Has a value for the whole batch beside those of its rows.
struct Shifted : torch::nn::Module {
  torch::nn::Linear a{nullptr}, b{nullptr};
  Shifted() {
    a = register_module("a", torch::nn::Linear(8, 8));
    b = register_module("b", torch::nn::Linear(8, 8));
  }
  torch::Tensor forward(torch::Tensor x, torch::Tensor shift) {
    x = stage("a", [&] { return torch::tanh(a(x) + shift); });
    return stage("b", [&] { return b(x) * shift; });
  }
};

TEST_CASE("an input that every microbatch gets whole is whole for larger ones",
          "[executor][sizes]") {
  torch::manual_seed(37);
  const Batch inputs{torch::randn({kRows, 8}), replicated(torch::randn({8}))};
  const Batch labels{torch::randn({kRows, 8})};
  const Compiled shifted{inputs,
                         labels,
                         compile(std::make_shared<Shifted>(),
                                 {.inputs = inputs,
                                  .labels = labels,
                                  .loss = testing::mean_square,
                                  .microbatches = kSizedMicrobatches})};
  check_sizes(shifted, {1, 2});
  check_sizes(shifted, {3, 2});
}

/// Passes on values that have no row per sample.
struct Pooled : torch::nn::Module {
  torch::nn::Linear a{nullptr}, b{nullptr};
  Pooled() {
    a = register_module("a", torch::nn::Linear(8, 8));
    b = register_module("b", torch::nn::Linear(8, 8));
  }
  torch::Tensor forward(torch::Tensor x) {
    const auto mean = stage("a", [&] { return a(x).mean(0); });
    return stage("b", [&] { return b(x) + mean; });
  }
};

TEST_CASE("a value without a row per sample crosses between equal sizes alone",
          "[executor][sizes]") {
  torch::manual_seed(39);
  const Compiled pooled = compiled(std::make_shared<Pooled>());
  CHECK_THAT(refusal(
                 [&] {
                   (void)resize(pooled.program, {1, 2});
                 },
                 Errc::CompileShape),
             ContainsSubstring("stage 0 takes 1 microbatch as one and stage 1 takes 2") &&
                 ContainsSubstring("give both stages one size"));
  CHECK(resize(pooled.program, {2, 2}).stage_graph().microbatch_sizes() == std::vector{2, 2});
}

TEST_CASE("schedules with sizes that cannot run are refused", "[compiler][sizes]") {
  torch::manual_seed(40);
  const Compiled chain = compiled(std::make_shared<testing::Chain>(2));
  const auto complaint = [&](const Schedule& schedule) {
    return refusal([&] { check(chain.program, schedule).or_throw(); }, Errc::ScheduleInvalid);
  };
  Schedule::Row both;
  for (int m = 0; m < kSizedMicrobatches; ++m) {
    both.push_back(cells::F(0, m));
  }
  for (int m = 0; m < kSizedMicrobatches / 2; ++m) {
    both.push_back(cells::F(1, m));
    both.push_back(cells::B(1, m));
  }
  for (int m = 0; m < kSizedMicrobatches; ++m) {
    both.push_back(cells::B(0, m));
  }
  CHECK_THAT(complaint(Schedule(
                 Schedule::Form::List,
                 {both},
                 {.microbatches = kSizedMicrobatches, .graph = sized(chain.program, {1, 2})})),
             ContainsSubstring("both are on one row"));
  CHECK_THAT(complaint(gpipe(sized(chain.program, {1, 5}), 10)), ContainsSubstring("V34"));
  // Two pipelines in opposite directions are replicas of each other.
  const Schedule mirrored = chimera(2, kSizedMicrobatches / 2);
  Schedule::Headers headers = mirrored.headers();
  headers.microbatches = kSizedMicrobatches;
  headers.graph->set_microbatch_sizes({2, 2, 2, 2});
  CHECK_THAT(complaint(Schedule(mirrored.form(), mirrored.rows(), headers)),
             ContainsSubstring("leave its @replicas, its @place or its @sizes out"));
  const Program again = resize(chain.program, {1, 2});
  CHECK_THAT(refusal(
                 [&] {
                   check(again, gpipe(sized(chain.program, {1, 2}), kSizedMicrobatches)).or_throw();
                 },
                 Errc::ScheduleInvalid),
             ContainsSubstring("compiled from a module"));
  CHECK(resize(chain.program, {}).shared() == chain.program.shared());
}

}  // namespace
}  // namespace stagecraft
