/// Checks that one include is enough: this program includes only stagecraft.h of the runtime, and
/// uses the names in README.md, docs/embedding.md and the examples.
#include <algorithm>
#include <memory>
#include <vector>

#include <torch/torch.h>

#include "stagecraft/stagecraft.h"
#include "stagecraft/tests/support/catch.h"

namespace {

namespace sc = stagecraft;
using namespace sc::cells;

struct Net : torch::nn::Module {
  torch::nn::Linear in{register_module("in", torch::nn::Linear(3, 4))};
  torch::nn::Linear out{register_module("out", torch::nn::Linear(4, 1))};

  torch::Tensor forward(torch::Tensor x, torch::Tensor shift) {
    auto h = sc::stage("first", [&] { return torch::tanh(in(x)) + shift; });
    return sc::stage("second", [&] { return sc::region("head", out, h); });
  }
};

/// `cut` replaces the markers.
sc::Program compile_net(const sc::Cut& cut = sc::AtMarkers{}) {
  torch::manual_seed(3);
  Net net;
  const auto x = torch::randn({4, 3});
  const sc::Loss loss = torch::nn::MSELoss();
  const sc::CompileOptions options{.inputs = {x, sc::replicated(torch::ones({4}))},
                                   .labels = {x.sum(1, /*keepdim=*/true)},
                                   .loss = loss,
                                   .microbatches = 2,
                                   .cut = cut};
  return sc::compile(net, options);
}

TEST_CASE("with the one include a program compiles, checks, simulates and trains",
          "[integration][umbrella]") {
  const sc::Program program = compile_net();
  const sc::StageGraph& stages = program.stage_graph();
  CHECK(program.parameter_names().size() == 4);
  CHECK_FALSE(program.explain().empty());
  CHECK_FALSE(program.graph_text().empty());
  const sc::Cut cut = sc::read_cut(sc::write_cut(program.cut()), "net.cut");
  CHECK(std::holds_alternative<sc::At>(cut));
  CHECK(sc::to_string(program.cut()).starts_with("stage 0: "));

  const sc::Schedule by_hand{{F(0, 0), F(0, 1), idle, B(0, 0), idle, B(0, 1)},
                             {idle, F(1, 0), B(1, 0), F(1, 1), B(1, 1), idle}};
  CHECK(sc::Schedule::parse(to_string(by_hand)) == by_hand);
  CHECK(sc::validate(by_hand, stages).empty());
  for (const sc::Schedule& built :
       {sc::one_f_one_b(stages, 2),
        sc::gpipe(stages, 2),
        sc::build_schedule("1f1b", {.devices = 2, .microbatches = 2})}) {
    const sc::CheckResult checked = sc::check(program, built);
    checked.or_throw();
    const sc::Timeline timeline = sc::simulate(built, stages);
    CHECK(timeline.makespan > 0);
  }

  const sc::Cluster cluster = sc::Cluster::local(2);
  const sc::TrainerOptions options{.learning_rate = sc::LearningRate{}, .clip = 1.0, .seed = 1};
  sc::Trainer trainer(cluster, program, by_hand, sc::AdamW{.lr = 1e-2}, options);
  const sc::Batch inputs = {torch::randn({4, 3}), sc::replicated(torch::ones({4}))};
  const sc::StepFuture step = trainer.step(inputs, {torch::randn({4, 1})});
  const sc::StepResult result = step.get();
  CHECK(result.losses.size() == 2);
  const sc::StateDict trained = trainer.state_dict();
  CHECK(trained.size() == 4);
  for (const sc::RankStatus& status : trainer.status()) {
    CHECK(status.answers);
  }
}

TEST_CASE("a model of one input and one label is trained by tensors, as one process trains it",
          "[integration][umbrella]") {
  torch::manual_seed(3);
  torch::nn::Sequential model(torch::nn::Linear(3, 4), torch::nn::Linear(4, 2));
  const torch::Tensor x = torch::randn({4, 3}), y = torch::randn({4, 2});
  const sc::Program program = sc::compile(*model,
                                          {.inputs = {x},
                                           .labels = {y},
                                           .loss = torch::nn::functional::smooth_l1_loss,
                                           .microbatches = 2,
                                           .cut = sc::Balanced{2}});
  sc::Trainer trainer(sc::Cluster::local(2), program, "1f1b", sc::Sgd{.lr = 0.1});
  sc::Reference one(program, sc::Sgd{.lr = 0.1}, {});
  (void)trainer.accumulate(x, y);
  (void)one.accumulate({x}, {y});
  CHECK(trainer.step(x, y).get().losses == one.step({x}, {y}).losses);
  CHECK(trainer.evaluate(x, y) > 0.0);
}

TEST_CASE("what is planned from a profile trains with the bits of the uncut model",
          "[integration][umbrella][planners]") {
  const sc::Program whole = compile_net(sc::At{});
  REQUIRE(whole.stage_graph().size() == 1);
  const sc::Batch inputs = {torch::randn({4, 3}), sc::replicated(torch::ones({4}))};
  const sc::Batch labels = {torch::randn({4, 1})};
  const sc::Profile found = sc::profile(whole, inputs, labels, {.repeats = 1, .cache = ""});
  const sc::Cluster cluster = sc::Cluster::local(2);
  const std::vector<sc::PlanProposal> plans =
      sc::plan(whole, found.costs, cluster, {.processors = 2});  // from the program's batch
  REQUIRE_FALSE(plans.empty());
  CHECK(sc::plan(whole, found.costs, cluster).front().microbatches == 2);  // as docs/planning.md
  // A plan of two copies adds up shares of gradients, which changes bits.
  const auto whole_one = std::ranges::find_if(
      plans, [](const sc::PlanProposal& plan) { return plan.graph.replicas() == 1; });
  REQUIRE(whole_one != plans.end());
  const sc::PlanProposal& best = *whole_one;
  CHECK(best.microbatches == 2);
  CHECK(best.step >= best.bound);

  const sc::Program program = compile_net(sc::planned_cut(found.costs, best));
  CHECK(program.stage_graph().edges() == best.graph.edges());
  sc::Trainer planned(cluster, program, best.candidate.schedule, sc::Sgd{.lr = 0.1});
  sc::Trainer uncut(sc::Cluster::local(1), whole, sc::gpipe(1, 2), sc::Sgd{.lr = 0.1});
  for (int step = 0; step < 2; ++step) {
    CHECK(planned.step(inputs, labels).get().losses == uncut.step(inputs, labels).get().losses);
  }

  sc::Costs others = found.costs;
  others.operators.pop_back();
  try {
    (void)sc::plan(whole, others, cluster, {.batch = 4});
    FAIL("costs of another model were accepted");
  } catch (const sc::Error& error) {
    CHECK(error.code() == sc::Errc::UsageArgument);
  }
}

TEST_CASE("a plan over several sizes trains in the microbatches that it chose",
          "[integration][umbrella][planners]") {
  torch::manual_seed(3);
  const auto net = std::make_shared<Net>();
  const sc::Batch inputs = {torch::randn({4, 3}), sc::replicated(torch::ones({4}))};
  const sc::Batch labels = {torch::randn({4, 1})};
  sc::CompileOptions options{.inputs = inputs,
                             .labels = labels,
                             .loss = torch::nn::MSELoss(),
                             .microbatches = 2,
                             .cut = sc::At{}};
  const sc::Program whole = sc::compile(net, options);
  sc::Costs costs =
      sc::profile(whole, inputs, labels, {.microbatch_sizes = {2, 1}, .repeats = 1, .cache = ""})
          .costs;
  for (sc::OperatorCost& of_one : costs.operators_at.at(1)) {  // as if these took almost no time
    of_one.forward = of_one.backward_input = of_one.backward_weight = 1e-9;
  }
  for (sc::OperatorCost& of_two : costs.operators) {
    of_two.forward = 1;
  }
  const sc::Cluster cluster = sc::Cluster::local(2);
  const sc::PlanProposal best = sc::plan(whole, costs, cluster, {.planner = "capslog"}).front();
  CHECK(best.candidate.microbatch_size == 1);
  REQUIRE(best.microbatches == 4);

  options.microbatches = best.microbatches;
  const sc::Program uncut_program = sc::compile(net, options);
  options.cut = sc::planned_cut(costs, best);
  const sc::Program program = sc::compile(net, options);
  sc::Trainer planned(cluster, program, best.candidate.schedule, sc::Sgd{.lr = 0.1});
  sc::Trainer uncut(sc::Cluster::local(1), uncut_program, sc::gpipe(1, 4), sc::Sgd{.lr = 0.1});
  for (int step = 0; step < 2; ++step) {
    const std::vector<double> losses = planned.step(inputs, labels).get().losses;
    CHECK(losses.size() == 4);
    CHECK(losses == uncut.step(inputs, labels).get().losses);
  }
}

TEST_CASE("with the one include a program tells its mistakes apart", "[integration][umbrella]") {
  const sc::Program program = compile_net();
  const sc::Schedule late = sc::Schedule::parse("0F0 0B0 .   .\n.   1F0 1B0 .\n");
  const std::vector<sc::Violation> violations = sc::check(program, late).violations;
  REQUIRE_FALSE(violations.empty());
  CHECK_FALSE(violations[0].rule.empty());
  try {
    const sc::Trainer trainer(sc::Cluster::local(2), program, late, sc::Sgd{.lr = 0.1});
    FAIL("the schedule was accepted");
  } catch (const sc::Error& error) {
    CHECK(error.code() == sc::Errc::ScheduleInvalid);
  }
}

}  // namespace
