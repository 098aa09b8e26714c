/// Every builder's schedule, run: the losses and weights of one process, and no more in flight than the schedule says.
#include <torch/torch.h>

#include "stagecraft/compiler/compile.h"
#include "stagecraft/scheduler/accumulation.h"
#include "stagecraft/scheduler/registry.h"
#include "stagecraft/scheduler/simulate.h"
#include "stagecraft/tests/executor/pipeline.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/modules.h"

namespace stagecraft {
namespace {

using testing::differing;
using testing::Pipeline;

constexpr int kRows = 8;  // of the batch: one per microbatch at most

struct Run {
  std::string builder;
  BuildRequest request;
};

/// Small sizes that every builder's constraints allow, with and without as many microbatches as it likes.
std::vector<Run> runs_of(const BuilderInfo& builder) {
  std::vector<Run> runs;
  for (const int devices : {2, 4}) {
    for (const int microbatches : {4, 8}) {
      BuildRequest request{.devices = devices, .microbatches = microbatches};
      if (builder.takes_graph) {
        request.graph = StageGraph::chain(devices);
      }
      try {
        (void)build_schedule(builder.name, request);
        runs.push_back({std::string(builder.name), request});
      } catch (const Error& error) {
        REQUIRE(error.code() == Errc::ScheduleParameter);  // a constraint, such as M >= 2P
      }
    }
  }
  return runs;
}

Program chain_program(int stages, int microbatches, Batch& inputs, Batch& labels) {
  torch::manual_seed(21);
  testing::Chain module(stages);
  inputs = {torch::randn({kRows, 8})};
  labels = {torch::randn({kRows, 8})};
  return compile(module, {.inputs = inputs, .labels = labels, .loss = testing::mean_square, .microbatches = microbatches});
}

void check_weights(const Schedule& schedule, const std::map<std::string, torch::Tensor>& found, const Reference& reference) {
  if (!reordered_accumulation(schedule)) {
    CHECK((differing(found, reference.state()) == std::vector<std::string>{}));
    return;
  }
  for (const StateTensor& expected : reference.state()) {
    INFO(expected.name);
    CHECK(torch::allclose(found.at(expected.name), expected.tensor, /*rtol=*/1e-5, /*atol=*/1e-7));
  }
}

void check_run(const Run& run) {
  const Schedule schedule = build_schedule(run.builder, run.request);
  const int replicas = schedule.stage_graph().replicas();
  INFO(run.builder << " with " << run.request.devices << " devices, " << run.request.microbatches << " microbatches");
  Batch inputs, labels;
  const Program program = chain_program(schedule.stages() / replicas, run.request.microbatches, inputs, labels);
  const Optimizer optimizer = Sgd{.lr = 0.1, .momentum = 0.9};
  Pipeline pipeline(program, schedule, {.optimizer = optimizer});
  Reference reference(program, optimizer, {.seed = 5});
  for (int step = 0; step < 2; ++step) {
    const auto outcome = pipeline.step(inputs, labels);
    for (const auto& error : outcome.errors) {
      INFO((error ? error->what() : ""));
      REQUIRE_FALSE(error.has_value());
    }
    const ReferenceStep expected = reference.step(inputs, labels);
    REQUIRE(outcome.losses.size() == expected.losses.size());
    for (std::size_t m = 0; m < expected.losses.size(); ++m) {
      CHECK(outcome.losses[m] == Catch::Approx(expected.losses[m]).epsilon(1e-6));
    }
    CHECK(outcome.reports[0].gradient_norm == Catch::Approx(expected.gradient_norm).epsilon(1e-6));
    for (std::size_t row = 0; row < schedule.rows().size(); ++row) {
      INFO("rank " << row);
      const int bound = peak_in_flight(schedule.rows()[row], Replicas(schedule).expand(program.stage_graph()));
      CHECK(outcome.reports[row].times.peak_in_flight == bound);
      CHECK(pipeline.executor(static_cast<int>(row)).bytes_held() == 0);
    }
  }
  check_weights(schedule, pipeline.state(), reference);
}

TEST_CASE("every builder's schedule trains as one process does, within its bound of activations", "[executor][builders]") {
  for (const BuilderInfo& builder : builders()) {
    const std::vector<Run> runs = runs_of(builder);
    CHECK_FALSE(runs.empty());
    for (const Run& run : runs) {
      check_run(run);
    }
  }
}

TEST_CASE("of an overlap group the task whose tensors are here goes first", "[executor][builders]") {
  Batch inputs, labels;
  const Program program = chain_program(2, 2, inputs, labels);
  // Rank 1 cannot run 1F1 before rank 0 has sent it, and rank 0 holds it back until 1B0 has run.
  const Schedule schedule = Schedule::parse("@form list\n0F0 0F1 0B0 0B1\n1F0 1F1|1B0 1B1\n");
  Promise<bool> backward_ran;
  const Future<bool> seen = backward_ran.future();
  std::vector<std::string> order;
  testing::PipelineOptions options;
  options.faults[Rank(0)] = [&](const Instruction& i) {
    if (i.op == Op::Run && to_string(i.task) == "0F1") {
      CHECK(seen.wait_until(std::chrono::steady_clock::now() + std::chrono::seconds(30)));
    }
  };
  options.faults[Rank(1)] = [&](const Instruction& i) {
    if (i.op == Op::Run) {
      order.push_back(to_string(i.task));
    }
    if (i.op == Op::Send && to_string(i.task) == "1B0") {
      backward_ran.set_value(true);
    }
  };
  Pipeline pipeline(program, schedule, options);
  Reference reference(program, options.optimizer, {.seed = 5});
  const auto outcome = pipeline.step(inputs, labels);
  REQUIRE_FALSE(outcome.errors[1].has_value());
  CHECK((order == std::vector<std::string>{"1F0", "1B0", "1F1", "1B1"}));
  CHECK((outcome.losses == reference.step(inputs, labels).losses));
  CHECK((differing(pipeline.state(), reference.state()) == std::vector<std::string>{}));
}

TEST_CASE("both copies of a stage hold the same bits after an update", "[executor][builders]") {
  const Schedule schedule = build_schedule("dualpipe", {.devices = 4, .microbatches = 8});
  Batch inputs, labels;
  const Program program = chain_program(4, 8, inputs, labels);
  Pipeline pipeline(program, schedule, {.optimizer = AdamW{.lr = 1e-2}, .clip = 0.01});
  REQUIRE_FALSE(pipeline.step(inputs, labels).errors[0].has_value());
  std::map<std::string, torch::Tensor> first;
  int twice = 0;
  for (int rank = 0; rank < 4; ++rank) {
    for (const StateTensor& state : pipeline.executor(rank).state()) {
      const auto [entry, added] = first.emplace(state.name, state.tensor);
      twice += added ? 0 : 1;
      CHECK(torch::equal(entry->second, state.tensor));
    }
  }
  CHECK(twice == 4 * 2 * 3);  // stages x (weight, bias) x (value and two moments)
}

TEST_CASE("an evaluation runs both replicas, each on its share of the microbatches", "[executor][builders]") {
  const Schedule schedule = build_schedule("chimera", {.devices = 2, .microbatches = 4});
  Batch inputs, labels;
  const Program program = chain_program(2, 4, inputs, labels);
  Pipeline pipeline(program, schedule);
  Reference reference(program, Sgd{}, {.seed = 5});
  const auto evaluated = pipeline.step(inputs, labels, false);
  CHECK((evaluated.losses == reference.step(inputs, labels).losses));
}

}  // namespace
}  // namespace stagecraft
