/// Tests copies that divide the experts of a region and exchange their samples (shard): they train
/// like copies that do not, up to rounding.
#include <algorithm>
#include <csignal>
#include <initializer_list>
#include <map>
#include <memory>
#include <random>

#include <torch/torch.h>

#include "stagecraft/actors/executor/optimizer/optimizer_registry.h"
#include "stagecraft/compiler/graph/autocast_guard.h"
#include "stagecraft/scheduler/builders/gpipe.h"
#include "stagecraft/tests/integration/divided_experts.h"
#include "stagecraft/tests/integration/failing_rank.h"
#include "stagecraft/tests/integration/heard_ranks.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/error_of.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft::tests::experts {
namespace {

using Catch::Matchers::ContainsSubstring;

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

TEST_CASE("evaluations use the experts of all ranks, region by region, between steps",
          "[integration][experts]") {
  const auto [stages, devices, copies, parts, level_3] = GENERATE(table<int, int, int, int, bool>(
      {{2, 2, 2, 2, false}, {1, 1, 4, 2, false}, {2, 2, 2, 2, true}}));
  CAPTURE(stages, copies, level_3);
  const Program program = make_program(of_stages(stages));
  Way way{.builder = "gpipe", .devices = devices, .copies = copies, .parts = parts};
  if (level_3) {
    way.sums = {.bucket_bytes = 4000, .shard_parameters = true};
  }
  const auto heard = std::make_shared<HeardRanks>();
  TrainedCopies divided(in_copies_of(program, way),
                        AdamW{.lr = 1e-2},
                        {.clip = 0.1, .seed = 9, .before_instruction = hook_of(heard)});
  way.divided = "";
  way.sums = {};
  TrainedCopies whole(in_copies_of(program, way));
  const Data batch = data(7);
  for (std::int64_t steps = 1; steps < 3; ++steps) {
    divided.train(steps);
    whole.train(steps);
    heard->begin();
    const double loss = divided.trainer.evaluate(batch.inputs, batch.labels);
    CHECK_THAT(
        loss,
        Catch::Matchers::WithinAbs(whole.trainer.evaluate(batch.inputs, batch.labels), kBound));
    CHECK(heard->most_gathered(Rank(0)) == 2);
    const std::vector<Instruction> list = heard->list(Rank(0));
    CHECK(std::ranges::none_of(list, is_exchange));
  }
  // Microbatches of other sizes, which no step has.
  const at::Tensor tokens = at::arange(13).remainder(16);
  CHECK(at::allclose(divided.trainer.predict({tokens}).at(0),
                     whole.trainer.predict({tokens}).at(0),
                     kBound,
                     kBound));
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
