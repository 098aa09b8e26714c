/// Tests copies that share the optimizer's state (shard_optimizer, ZeRO-1): the bits of copies that
/// do not, less memory, checkpoints, failures.
#include <algorithm>
#include <csignal>
#include <functional>
#include <map>
#include <memory>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/actors/executor/optimizer/optimizer_registry.h"
#include "stagecraft/compiler/graph/autocast_guard.h"
#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/strategy/strategy_of.h"
#include "stagecraft/tests/integration/failing_rank.h"
#include "stagecraft/tests/integration/models.h"
#include "stagecraft/tests/integration/trained_copies.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/error_of.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft::tests::shards {
namespace {

using Catch::Matchers::ContainsSubstring;

constexpr ReplicateOptions kShards{.shard_optimizer = true};

using Run = TrainedCopies;
using Tensors = TensorsByName;

constexpr const ModelOptions& kModel = kShardedModel;

Execution in_copies_of(const Program& program,
                       int copies,
                       const ReplicateOptions& options,
                       const std::string& builder = "1f1b",
                       int devices = 2) {
  const Schedule rows =
      build_schedule(builder, {.devices = devices, .microbatches = kMicrobatches / copies});
  return make_execution(program, in_copies(rows, copies), options);
}

/// Checks that both runs have trained the same bits, optimizer's state included.
void check_equal(Run& shared, Run& whole) {
  const TemporaryFolder folder;
  CHECK(shared.last.mean_loss == whole.last.mean_loss);
  CHECK(shared.last.gradient_norm == whole.last.gradient_norm);
  CHECK(equal(tensors_saved_by(shared.trainer, folder.path() + "/shared"),
              tensors_saved_by(whole.trainer, folder.path() + "/whole")));
}

// ---- bits ---------------------------------------------------------------------------------------

TEST_CASE("copies that share the optimizer's state train the bits of those that do not",
          "[integration][shards]") {
  const auto [builder, devices, copies, stages] =
      GENERATE(table<std::string, int, int, int>({{"1f1b", 2, 2, 2},
                                                  {"gpipe", 1, 4, 1},
                                                  {"zb-h1", 2, 2, 2},
                                                  {"interleaved", 2, 2, 4},
                                                  {"zb-v", 2, 2, 4},
                                                  {"chimera", 2, 1, 2},
                                                  {"dualpipe", 2, 1, 2}}));
  ModelOptions model = kModel;
  model.stages = stages;
  const Program program = make_program(model);
  const std::int64_t bucket_bytes = GENERATE(0, 20000);
  CAPTURE(builder, copies, bucket_bytes);
  ReplicateOptions options = kShards;
  if (bucket_bytes > 0) {
    options.bucket_bytes = bucket_bytes;
  }
  Run shared(in_copies_of(program, copies, options, builder, devices));
  Run whole(in_copies_of(program, copies, {}, builder, devices));
  shared.train(4);
  whole.train(4);
  check_equal(shared, whole);
}

TEST_CASE("every optimizer, with groups, kept gradients and two threads, updates shards alike",
          "[integration][shards]") {
  const Program program = make_program(kModel);
  const TrainerOptions options{
      .groups = {{.match = "layer0.*", .frozen = true},
                 {.match = "*.bias", .lr = 3e-2, .weight_decay = 0.0},
                 {.match = "layer?.weight", .lr_scale = 0.5, .frozen_for = 1}},
      .clip = 0.1,
      .keep_gradients = true,
      .seed = 9,
      .threads_per_worker = 2,
  };
  for (const OptimizerInfo& info : kOptimizers) {
    CAPTURE(info.name);
    Optimizer optimizer = optimizer_named(info.name).value();
    for (const auto& [setting, value] : {std::pair("lr", 1e-2),
                                         std::pair("weight_decay", 0.1),
                                         std::pair("momentum", 0.5),
                                         std::pair("amsgrad", 1.0),
                                         std::pair("centered", 1.0)}) {
      (void)set_setting(optimizer, setting, value);  // of those that have it
    }
    Run shared(in_copies_of(program, 2, kShards), optimizer, options);
    Run whole(in_copies_of(program, 2, {}), optimizer, options);
    shared.train(3);
    whole.train(3);
    check_equal(shared, whole);
    CHECK(same_bits(shared.trainer.gradients(), whole.trainer.gradients()));
  }
}

TEST_CASE("elements of gradients are limited in shards as in the whole, and weights averaged",
          "[integration][shards]") {
  const Program program = make_program(kModel);
  const TrainerOptions options{
      .clip_value = 1e-3, .average = 0.9, .keep_gradients = true, .seed = 9};
  Run shared(in_copies_of(program, 2, kShards), AdamW{.lr = 1e-2}, options);
  Run whole(in_copies_of(program, 2, {}), AdamW{.lr = 1e-2}, options);
  shared.train(3);
  whole.train(3);
  check_equal(shared, whole);
  CHECK(same_bits(shared.trainer.averages(), whole.trainer.averages()));
  CHECK(same_bits(shared.trainer.gradients(), whole.trainer.gradients()));
}

TEST_CASE("shards in worker processes, over several batches an update, and by task",
          "[integration][shards][processes]") {
  const Program program = GENERATE(false, true) ? tied_sharded_program(2) : make_program(kModel);
  Run whole(in_copies_of(program, 2, {}));
  const auto train = [](Run& run) {
    for (std::int64_t step = 0; step < 3; ++step) {
      const Data first = data(2 * step);
      run.trainer.accumulate(first.inputs, first.labels);
      const Data second = data(2 * step + 1);
      run.last = run.trainer.step(second.inputs, second.labels).get();
    }
  };
  train(whole);
  SECTION("processes") {
    Run shared(in_copies_of(program, 2, kShards),
               AdamW{.lr = 1e-2},
               {.clip = 0.1, .seed = 9},
               [](int ranks) { return Cluster::spawn(ranks); });
    train(shared);
    check_equal(shared, whole);
  }
  SECTION("by task") {
    Run shared(in_copies_of(program, 2, kShards),
               AdamW{.lr = 1e-2},
               {.clip = 0.1, .seed = 9, .dispatch = Dispatch::PerTask});
    train(shared);
    check_equal(shared, whole);
  }
}

TEST_CASE("a step that is skipped leaves shards as they are", "[integration][shards][loss-scale]") {
  const Program program = [] {
    const AutocastGuard autocast;
    AutocastGuard::set({.enabled = true, .dtype = at::kHalf});
    return make_program(kModel);
  }();
  const TrainerOptions options{
      .clip = 0.1,
      .loss_scaling = LossScaling{.initial = 0x1p20, .growth_interval = 2},  // too large at first
      .seed = 9};
  Run shared(in_copies_of(program, 2, kShards), AdamW{.lr = 1e-2}, options);
  Run whole(in_copies_of(program, 2, {}), AdamW{.lr = 1e-2}, options);
  int skipped = 0;
  int made = 0;
  for (std::int64_t step = 0; step < 12; ++step) {
    shared.last = step_of(shared.trainer, step).get();
    whole.last = step_of(whole.trainer, step).get();
    CHECK(shared.last.skipped == whole.last.skipped);
    ++(shared.last.skipped ? skipped : made);
  }
  CHECK(skipped > 0);
  CHECK(made > 0);
  CHECK(same_bits(shared.trainer.state_dict(), whole.trainer.state_dict()));
}

TEST_CASE("copies of tied stages share the optimizer's state, and train the bits of the whole",
          "[integration][shards][ties]") {
  const auto [builder, devices, copies, stages] =
      GENERATE(table<std::string, int, int, int>({{"1f1b", 2, 2, 2},
                                                  {"gpipe", 4, 2, 4},
                                                  {"interleaved", 2, 2, 4},
                                                  {"zb-v", 2, 2, 4},
                                                  {"chimera", 2, 1, 2},
                                                  {"chimera", 2, 2, 2},
                                                  {"dualpipe", 2, 1, 2}}));
  const Program program = tied_sharded_program(stages);
  const std::int64_t bucket_bytes = GENERATE(0, 20000);
  CAPTURE(builder, copies, stages, bucket_bytes);
  ReplicateOptions options = kShards;
  if (bucket_bytes > 0) {
    options.bucket_bytes = bucket_bytes;
  }
  Run shared(in_copies_of(program, copies, options, builder, devices));
  Run whole(in_copies_of(program, copies, {}, builder, devices));
  const auto& groups = shared.trainer.plan().tables.groups;
  CHECK(std::ranges::any_of(groups,
                            [](const PlanGroup& g) { return g.kind == PlanGroup::Kind::Tie; }));
  CHECK(std::ranges::all_of(groups, [](const PlanGroup& g) {
    return g.kind == PlanGroup::Kind::Tie || g.sharing == Sharing::States;
  }));
  shared.train(4);
  whole.train(4);
  check_equal(shared, whole);
}

TEST_CASE("frozen ties, and ties in groups, are shared like others",
          "[integration][shards][ties]") {
  const Program program = tied_sharded_program(2);
  const TrainerOptions options{.groups = {{.match = "embed.*", .frozen = true},
                                          {.match = "shared.*", .lr_scale = 0.5, .frozen_for = 1}},
                               .clip = 0.1,
                               .average = 0.9,
                               .keep_gradients = true,
                               .seed = 9};
  Run shared(in_copies_of(program, 2, kShards), AdamW{.lr = 1e-2}, options);
  Run whole(in_copies_of(program, 2, {}), AdamW{.lr = 1e-2}, options);
  shared.train(3);
  whole.train(3);
  check_equal(shared, whole);
  CHECK(same_bits(shared.trainer.gradients(), whole.trainer.gradients()));
  CHECK(same_bits(shared.trainer.averages(), whole.trainer.averages()));
}

TEST_CASE("stages of a tie that are asked for different things share nothing",
          "[integration][shards][ties]") {
  const Program program = tied_sharded_program(2);
  const Schedule rows =
      in_copies(build_schedule("1f1b", {.devices = 2, .microbatches = kMicrobatches / 2}), 2);
  const Layout layout = Layout::of(rows);
  std::vector<Directive> directives = strategy_of(rows, layout, kShards).directives();
  for (Directive& directive : directives) {
    auto* const replicate = std::get_if<ReplicateDirective>(&directive);
    if (replicate != nullptr && replicate->ranks.front() == Rank(1)) {
      replicate->options.share(Sharing::Weights);
    }
  }
  Run mixed(make_execution(program, Strategy(directives)));
  const auto& groups = mixed.trainer.plan().tables.groups;
  CHECK(std::ranges::count(groups, PlanGroup::Kind::Copies, &PlanGroup::kind) == 2);
  CHECK(std::ranges::none_of(groups, &PlanGroup::has_shards));
  Run whole(in_copies_of(program, 2, {}));
  mixed.train(2);
  whole.train(2);
  check_equal(mixed, whole);
}

TEST_CASE("a gradient that is not finite is told as without shards",
          "[integration][shards][bad-input]") {
  ModelOptions model = kModel;
  model.steep = true;
  const Program program = make_program(model);
  const auto error = [&](const ReplicateOptions& options) {
    Run run(in_copies_of(program, 2, options), AdamW{.lr = 1e-2}, {.seed = 9});
    const StateDict before = run.trainer.state_dict();
    const Error found = error_of(step_of(run.trainer, 0));
    CHECK(same_bits(run.trainer.state_dict(), before));
    return found;
  };
  const Error shared = error(kShards);
  const Error whole = error({});
  CHECK(shared.code() == Errc::NonFinite);
  CHECK(shared.message() == whole.message());
  CHECK(shared.context().stage == whole.context().stage);
}

// ---- checkpoints --------------------------------------------------------------------------------

TEST_CASE("a checkpoint of shards goes on without them, and with others",
          "[integration][shards][checkpoint]") {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/a.ckpt";
  const Program program = GENERATE(false, true) ? tied_sharded_program(2) : make_program(kModel);
  Run unbroken(in_copies_of(program, 2, {}));
  unbroken.train(4);
  const auto writes = GENERATE(true, false);
  const auto reads = GENERATE(true, false);
  CAPTURE(writes, reads);
  {
    Run writer(in_copies_of(program, 2, writes ? kShards : ReplicateOptions()));
    writer.train(2);
    writer.trainer.save(path);
  }
  ReplicateOptions other{.bucket_bytes = 20000, .shard_optimizer = true};
  Run reader(in_copies_of(program, 2, reads ? other : ReplicateOptions()));
  reader.train(1);
  reader.trainer.load(path);
  CHECK(reader.trainer.steps() == 2);
  reader.train(4);
  check_equal(reader, unbroken);
}

// ---- what is refused, and failures --------------------------------------------------------------

TEST_CASE("what cannot share an optimizer's state is refused", "[integration][shards][bad-input]") {
  const Program program = make_program(kModel);
  const CustomOptimizer own{.name = "own", .update = [](const CustomUpdate&) {}};
  CHECK_THAT(refusal([&] { Run run(in_copies_of(program, 2, kShards), own); }),
             ContainsSubstring("an optimizer of your own updates whole parameters"));
}

TEST_CASE("a rank that fails in the gather of weights loses them, and says so",
          "[integration][shards][failure]") {
  const Program program = make_program(kModel);
  const auto failing = std::make_shared<FailingRank>();
  Run run(in_copies_of(program, 2, kShards),
          AdamW{.lr = 1e-2},
          {.seed = 9, .before_instruction = hook_of(failing)});
  const TemporaryFolder folder;
  run.train(1);
  run.trainer.save(folder.path() + "/a.ckpt");
  const Plan& plan = run.trainer.plan();
  const auto& list = plan.list_of(Rank(3)).instructions;
  const auto gather = std::ranges::find_if(list, [&](const Instruction& i) {
    return i.op == Op::Start && gathers_weights(plan.tables, i);
  });
  REQUIRE(gather != list.end());
  failing->fail_at({Rank(3), gather->id});
  const Error error = error_of(step_of(run.trainer, 1));
  CHECK(error.code() == Errc::WorkerLost);
  CHECK(thrown_by([&] { (void)run.trainer.state_dict(); }) == Errc::WorkerLost);
  run.trainer.load(folder.path() + "/a.ckpt");
  run.train(3);
  Run whole(in_copies_of(program, 2, {}), AdamW{.lr = 1e-2}, {.seed = 9});
  whole.train(3);
  check_equal(run, whole);
}

TEST_CASE("a lost rank's shard comes from its mirror, and without one no copy has it",
          "[integration][shards][processes][recovery]") {
  const bool mirror = GENERATE(true, false);
  const Program program = GENERATE(false, true) ? tied_sharded_program(2) : make_program(kModel);
  Run run(in_copies_of(program, 2, kShards),
          AdamW{.lr = 1e-2},
          {.clip = 0.1, .seed = 9, .mirror = mirror},
          [](int ranks) { return Cluster::spawn(ranks); });
  run.train(2);
  REQUIRE(kill(static_cast<pid_t>(run.cluster.workers()[3].process), SIGKILL) == 0);
  CHECK(error_of(step_of(run.trainer, 2)).code() == Errc::WorkerLost);
  run.cluster.replace(Rank(3));
  if (!mirror) {
    CHECK_THAT(refusal([&] { (void)run.trainer.recover(); }, Errc::WorkerLost),
               ContainsSubstring("no rank has exp_avg") && ContainsSubstring("load a checkpoint"));
    return;
  }
  CHECK(run.trainer.recover() >= 1);
  run.train(4);
  Run whole(in_copies_of(program, 2, {}));
  whole.train(4);
  check_equal(run, whole);
}

}  // namespace
}  // namespace stagecraft::tests::shards
