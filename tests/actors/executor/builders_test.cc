/// Runs every builder's schedule: the losses and weights equal those of one process, and no more
/// microbatches are in flight than the schedule says.
#include <torch/torch.h>

#include "stagecraft/compiler/compile.h"
#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/model/surplus.h"
#include "stagecraft/scheduler/notes/accumulation.h"
#include "stagecraft/scheduler/rules/validate.h"
#include "stagecraft/scheduler/simulate/simulate.h"
#include "stagecraft/tests/actors/executor/pipeline.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/modules.h"

namespace stagecraft {
namespace {

using testing::differing;
using testing::Pipeline;

constexpr int kBatchRows = 8;  // of the batch: at most one per microbatch

struct Run {
  std::string builder;
  BuildRequest request;
};

/// Returns small sizes that every builder's constraints allow, with and without the preferred
/// number of microbatches.
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
        REQUIRE(error.code() == Errc::ScheduleParameter);  // a constraint, for example M >= 2P
      }
    }
  }
  return runs;
}

/// Draws a batch for it.
template <class Module>
Program program_of(Module&& module, int microbatches, Batch& inputs, Batch& labels) {
  inputs = {torch::randn({kBatchRows, 8})};
  labels = {torch::randn({kBatchRows, 8})};
  return compile(module,
                 {.inputs = inputs,
                  .labels = labels,
                  .loss = testing::mean_square,
                  .microbatches = microbatches});
}

Program chain_program(int stages, int microbatches, Batch& inputs, Batch& labels) {
  torch::manual_seed(21);
  return program_of(testing::Chain(stages), microbatches, inputs, labels);
}

/// `graph`: the program's graph, laid out for the schedule's replicas.
void check_weights(const Schedule& schedule,
                   const StageGraph& graph,
                   const std::map<std::string, torch::Tensor>& found,
                   const Reference& reference) {
  if (!reordered_accumulation(schedule, graph)) {
    CHECK((differing(found, reference.state()) == std::vector<std::string>{}));
    return;
  }
  for (const StateTensor& expected : reference.state()) {
    INFO(expected.name);
    CHECK(torch::allclose(found.at(expected.name), expected.tensor, /*rtol=*/1e-5, /*atol=*/1e-7));
  }
}

/// Returns the number of further copies of state tensors on all ranks; all copies have the same
/// bits.
int count_copies(Pipeline& pipeline) {
  std::map<std::string, torch::Tensor> first;
  int copies = 0;
  for (int rank = 0; rank < pipeline.layout().ranks(); ++rank) {
    for (const StateTensor& state : pipeline.executor(rank).state()) {
      const auto [entry, added] = first.emplace(state.name, state.tensor.cpu());
      copies += added ? 0 : 1;
      INFO(state.name << " on rank " << rank);
      CHECK(torch::equal(entry->second, state.tensor.cpu()));
    }
  }
  return copies;
}

/// Returns the number of copies.
int check_run(const Schedule& schedule,
              const Program& program,
              const Batch& inputs,
              const Batch& labels,
              const Optimizer& optimizer = Sgd{.lr = 0.1, .momentum = 0.9},
              std::optional<double> clip = std::nullopt) {
  const StageGraph graph = Layout::of(schedule).expand(program.stage_graph());
  REQUIRE(validate(schedule, graph, {.microbatches = program.microbatches()}).empty());
  Pipeline pipeline(
      program, schedule, {.optimizer = optimizer, .clip = clip, .record_timeline = true});
  Reference reference(program, optimizer, {.clip = clip, .seed = 5});
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
    for (int rank = 0; rank < pipeline.layout().ranks(); ++rank) {
      INFO("rank " << rank);
      const int row = pipeline.layout().row_of(Rank(rank));
      CHECK(outcome.reports[static_cast<std::size_t>(rank)].times.peak_in_flight ==
            peak_in_flight(schedule.rows()[static_cast<std::size_t>(row)], graph));
    }
    CHECK(testing::held_at_end(outcome) == 0);
  }
  check_weights(schedule, graph, pipeline.state(), reference);
  return count_copies(pipeline);
}

TEST_CASE("every builder's schedule trains as one process does, within its bound of activations",
          "[executor][builders]") {
  for (const BuilderInfo& builder : builders()) {
    const std::vector<Run> runs = runs_of(builder);
    CHECK_FALSE(runs.empty());
    for (const Run& run : runs) {
      INFO(run.builder << " with " << run.request.devices << " devices, "
                       << run.request.microbatches << " microbatches");
      const Schedule schedule = build_schedule(run.builder, run.request);
      Batch inputs, labels;
      const Program program = chain_program(
          Layout::of(schedule).model_stages(), run.request.microbatches, inputs, labels);
      check_run(schedule, program, inputs, labels);
    }
  }
}

using Kind = testing::MixedChain::Kind;

Program mixed_program(std::vector<Kind> kinds, int microbatches, Batch& inputs, Batch& labels) {
  torch::manual_seed(22);
  return program_of(testing::MixedChain(std::move(kinds)), microbatches, inputs, labels);
}

struct Mixture {
  const char* name;
  Kind kind;
  int (*first)(int stages);  ///< the first stage of this kind
  int (*end)(int stages);    ///< the end of these stages
};

const Mixture kMixtures[] = {
    {"frozen in front",
     Kind::Frozen,
     [](int) { return 0; },
     [](int n) { return std::max(1, n / 2); }},
    {"frozen in the middle",
     Kind::Frozen,
     [](int n) { return n / 2; },
     [](int n) { return n / 2 + 1; }},
    {"one that the loss does not use",
     Kind::Unused,
     [](int n) { return n / 2; },
     [](int n) { return n / 2 + 1; }},
    {"one that makes integers",
     Kind::Indices,
     [](int n) { return (n - 1) / 2; },
     [](int n) { return (n + 1) / 2; }},
    {"one that makes booleans",
     Kind::Mask,
     [](int n) { return (n - 1) / 2; },
     [](int n) { return (n + 1) / 2; }},
    {"one without gradients", Kind::NoGrad, [](int) { return 0; }, [](int) { return 1; }},
};

std::size_t surplus_tasks(const Schedule& schedule, const StageGraph& graph) {
  std::size_t tasks = 0;
  for (const Surplus& surplus : find_surplus(schedule, graph)) {
    tasks += surplus.tasks;
  }
  return tasks;
}

TEST_CASE(
    "every builder's schedule trains a model with stages that have no backward, or half of one",
    "[executor][builders][surplus]") {
  for (const BuilderInfo& builder : builders()) {
    const Run run = runs_of(builder).back();
    const Schedule schedule = build_schedule(run.builder, run.request);
    const int stages = Layout::of(schedule).model_stages();
    for (const Mixture& mixture : kMixtures) {
      INFO(run.builder << ", " << stages << " stages, " << mixture.name);
      std::vector<Kind> kinds(static_cast<std::size_t>(stages), Kind::Trained);
      std::fill(
          kinds.begin() + mixture.first(stages), kinds.begin() + mixture.end(stages), mixture.kind);
      Batch inputs, labels;
      const Program program = mixed_program(kinds, run.request.microbatches, inputs, labels);
      check_run(schedule, program, inputs, labels);
      const Layout layout = Layout::of(schedule);
      const std::size_t surplus = surplus_tasks(schedule, layout.expand(program.stage_graph()));
      CHECK(lower_schedule(program, schedule, layout, true).surplus_count() == surplus);
      CHECK((surplus > 0 || builder.takes_graph || mixture.kind == Kind::Frozen));
    }
  }
}

TEST_CASE("surplus tasks of a schedule of one's own may stand anywhere behind their forward",
          "[executor][surplus]") {
  const char* text = GENERATE(
      // Stage 0 has no backward, and stage 1 needs no gradient for its inputs: 1I does nothing, 1W
      // does all.
      "0F0 0B0 0F1 0I1 0W1 .   .   .   .\n"
      ".   1F0 1I0 1F1 1I1 .   .   1W0 1W1\n"
      ".   .   2F0 .   2F1 2B0 2B1 .   .\n",
      // Does the same in groups, and with a whole backward.
      "@form list\n"
      "0F0 0F1|0B0 0B1\n"
      "1F0 1I0|1F1 1B1 1W0\n"
      "2F0 2I0|2F1 2B1 2W0\n");
  const Schedule schedule = Schedule::parse(text);
  Batch inputs, labels;
  const Program program =
      mixed_program({Kind::Frozen, Kind::Trained, Kind::Trained}, 2, inputs, labels);
  check_run(schedule, program, inputs, labels);
  CHECK(surplus_tasks(schedule, program.stage_graph()) >= 3);
}

TEST_CASE("of a frozen stage in the middle I does all and frees what is kept",
          "[executor][surplus]") {
  const Schedule schedule = Schedule::parse(
      "0F0 0F1 .   .   .   .   0I0 0W0 .   0I1 0W1 .\n"
      ".   1F0 1F1 .   1I0 .   .   1I1 .   1W1 1W0 .\n"
      ".   .   2F0 2B0 .   2F1 2B1 .   .   .   .   .\n");
  Batch inputs, labels;
  const Program program =
      mixed_program({Kind::Trained, Kind::Frozen, Kind::Trained}, 2, inputs, labels);
  check_run(schedule, program, inputs, labels);
  const Plan plan = lower_schedule(program, schedule, Layout::of(schedule), true);
  CHECK_THAT(to_string(plan),
             Catch::Matchers::ContainsSubstring("run 1W0, which does nothing") &&
                 Catch::Matchers::ContainsSubstring("run 0I0, which does nothing") &&
                 Catch::Matchers::ContainsSubstring("(4 do nothing)"));
}

TEST_CASE("of an overlap group the task whose tensors are here goes first",
          "[executor][builders]") {
  Batch inputs, labels;
  const Program program = chain_program(2, 2, inputs, labels);
  // Rank 1 cannot run 1F1 before rank 0 has sent its input, and rank 0 holds that back until 1B0
  // has run.
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

TEST_CASE("a schedule with rows that have no task trains as one process does",
          "[executor][builders]") {
  const Schedule schedule = Schedule::parse(
      ".   .   .   .   .   .  \n"
      "0F0 0F1 .   0B0 .   0B1\n"
      ".   .   .   .   .   .  \n"
      ".   1F0 1B0 1F1 1B1 .  \n");
  Batch inputs, labels;
  const Program program = chain_program(2, 2, inputs, labels);
  check_run(schedule, program, inputs, labels);
}

TEST_CASE("both copies of a stage hold the same bits after an update", "[executor][builders]") {
  const Schedule schedule = build_schedule("dualpipe", {.devices = 4, .microbatches = 8});
  Batch inputs, labels;
  const Program program = chain_program(4, 8, inputs, labels);
  Pipeline pipeline(program, schedule, {.optimizer = AdamW{.lr = 1e-2}, .clip = 0.01});
  REQUIRE_FALSE(pipeline.step(inputs, labels).errors[0].has_value());
  CHECK(count_copies(pipeline) == 4 * 2 * 3);  // stages x (weight, bias) x (value and two moments)
}

Program tied_program(int stages, bool bare, int microbatches, Batch& inputs, Batch& labels) {
  torch::manual_seed(24);
  return program_of(testing::TiedChain(stages, bare), microbatches, inputs, labels);
}

TEST_CASE("every builder's schedule trains stages that share parameters as one process does",
          "[executor][builders][ties]") {
  for (const BuilderInfo& builder : builders()) {
    const std::vector<Run> runs = runs_of(builder);
    for (const Run& run : {runs.front(), runs.back()}) {
      const Schedule schedule = build_schedule(run.builder, run.request);
      const Layout layout = Layout::of(schedule);
      const int stages = layout.model_stages();
      for (const bool bare : {false, true}) {
        INFO(run.builder << ", " << stages << " stages, bare " << bare);
        Batch inputs, labels;
        const Program program =
            tied_program(stages, bare, run.request.microbatches, inputs, labels);
        const StageGraph graph = layout.expand(program.stage_graph());
        CHECK(graph.tied().size() == (bare && stages < 3 ? 2U
                                      : bare             ? 4U
                                                         : 5U) *
                                         static_cast<std::size_t>(layout.replicas()));
        const bool reordered = reordered_accumulation(schedule, graph).has_value();
        const Optimizer optimizer =
            reordered ? Optimizer(Sgd{.lr = 0.1, .momentum = 0.9}) : Optimizer(AdamW{.lr = 1e-2});
        CHECK(check_run(schedule, program, inputs, labels, optimizer, 0.01) > 0);
      }
    }
  }
}

/// These schedules have three copies of a pipeline of two stages.
const char* const kThreeRows =  // every row has a copy of one stage and a copy of the other
    "@form list\n"
    "@edges 0-1,2-3,4-5\n"
    "@replicas 3=1,2=0,4=2,5=3\n"
    "@microbatches 6\n"
    "4F0 4F1 3F0 3B0 3F1 3B1 4B0 4B1\n"
    "2F0 2F1 1F0 1I0 1F1 1B1 1W0 2B0 2B1\n"
    "0F0 0F1 5F0 5B0 5F1 5B1 0B0 0B1\n";
const char* const kTwoRows =  // two whole copies on one row
    "@form list\n"
    "@edges 0-1,2-3,4-5\n"
    "@replicas 0=2,2=4,1=3,3=5\n"
    "@microbatches 6\n"
    "0F0 1F0 2F0 3F0 1B0 0B0 3B0 2B0 0F1 1F1 1B1 0B1 2F1 3F1 3B1 2B1\n"
    "4F0 5F0 5B0 4B0 4F1 5F1 5B1 4B1\n";

TEST_CASE("three copies of a pipeline train as one process does, up to the order of sums",
          "[executor][builders]") {
  const Schedule schedule = Schedule::parse(GENERATE(kThreeRows, kTwoRows));
  REQUIRE(Layout::of(schedule).replicas() == 3);
  torch::manual_seed(23);
  testing::Chain module(2);
  const Batch inputs{torch::randn({12, 8})};
  const Batch labels{torch::randn({12, 8})};
  const Program program = compile(
      module,
      {.inputs = inputs, .labels = labels, .loss = testing::mean_square, .microbatches = 6});
  check_run(schedule, program, inputs, labels);
  Pipeline pipeline(program, schedule, {.clip = 0.01});
  REQUIRE_FALSE(pipeline.step(inputs, labels).errors[0].has_value());
  CHECK(count_copies(pipeline) ==
        2 * 2 * 2 * 2);  // more copies x stages x (weight, bias) x (value, momentum)
  Reference reference(program, Sgd{}, {.seed = 5});
  Pipeline fresh(program, schedule);
  CHECK((fresh.step(inputs, labels, false).losses == reference.step(inputs, labels).losses));
}

TEST_CASE("stages that share parameters train wherever they are, each copy with the same bits",
          "[executor][builders][ties]") {
  const char* text = GENERATE(
      // The first runs all on one rank and sends nothing. The second has the last stage before the
      // first. The third has three copies of both.
      "@form list\n0F0 1F0 1B0 0B0 0F1 1F1 1B1 0B1\n",
      "@form list\n1F0 1B0 1F1 1B1\n0F0 0F1 0B0 0B1\n",
      "@form list\n@edges 0-1,2-3,4-5\n@replicas 0=3,3=4,1=2,2=5\n"
      "0F0 3F0 2F0 2B0 0B0 3B0\n"
      "1F0 4F0 5F0 5B0 4B0 1B0\n");
  const Schedule schedule = Schedule::parse(text);
  const int microbatches = schedule.microbatches();
  torch::manual_seed(25);
  testing::TiedChain module(2);
  const Batch inputs{torch::randn({2 * microbatches, 8})};
  const Batch labels{torch::randn({2 * microbatches, 8})};
  const Program program = compile(module,
                                  {.inputs = inputs,
                                   .labels = labels,
                                   .loss = testing::mean_square,
                                   .microbatches = microbatches});
  CHECK(check_run(schedule, program, inputs, labels) > 0);
  const Layout layout = Layout::of(schedule);
  const Plan plan = lower_schedule(program, schedule, layout, true);
  const auto& groups = plan.tables.groups;
  CHECK(std::ranges::count(groups, PlanGroup::Kind::Tie, &PlanGroup::kind) == layout.replicas());
  const auto tie = std::ranges::find(groups, PlanGroup::Kind::Tie, &PlanGroup::kind);
  REQUIRE(tie != groups.end());
  CHECK((tie->parameters ==
         std::vector<std::string>{"matrix", "seen", "block.weight", "block.bias"}));
  CHECK_THAT(
      to_string(plan),
      Catch::Matchers::ContainsSubstring("matrix, seen, block.weight, block.bias of stages 0, 1"));
}

TEST_CASE("the gradients of shared parameters are those of one loop, up to the order of sums",
          "[executor][ties]") {
  torch::manual_seed(26);
  testing::TiedChain module(4);
  const Batch inputs{torch::randn({kBatchRows, 8})};
  const Batch labels{torch::randn({kBatchRows, 8})};
  constexpr int kParts = 4;
  const Program program = compile(
      module,
      {.inputs = inputs, .labels = labels, .loss = testing::mean_square, .microbatches = kParts});
  Reference reference(program, Sgd{.lr = 0.1}, {.seed = 5});
  const double norm = reference.step(inputs, labels).gradient_norm;
  const auto x = inputs[0].tensor.chunk(kParts);
  const auto y = labels[0].tensor.chunk(kParts);
  for (std::size_t m = 0; m < kParts; ++m) {
    testing::mean_square(module.forward(x[m]), y[m]).backward();
  }
  std::map<std::string, int> times;
  for (const StateTensor& found : reference.gradients()) {
    ++times[found.name];
    const torch::Tensor expected = module.named_parameters()[found.name].grad() / kParts;
    INFO(found.name);
    CHECK((found.tensor - expected).abs().max().item<double>() <=
          1e-6 * expected.abs().max().item<double>());
  }
  CHECK(times.at("block.weight") == 3);
  double squares = 0.0;  // each parameter once
  for (const torch::Tensor& parameter : module.parameters()) {
    squares +=
        parameter.grad().defined() ? (parameter.grad() / kParts).pow(2).sum().item<double>() : 0.0;
  }
  CHECK(norm == Catch::Approx(std::sqrt(squares)).epsilon(1e-6));
}

TEST_CASE("an evaluation runs both copies, each on its share of the microbatches",
          "[executor][builders]") {
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
