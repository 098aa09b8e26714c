/// Tests copies that share gradients, and weights too (shard_grads and shard_params, ZeRO-2 and 3):
/// the bits of one process that sums in the same rounds, checkpoints, failures.
#include <algorithm>
#include <array>
#include <csignal>
#include <functional>
#include <map>
#include <memory>

#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/equal.h>

#include "stagecraft/actors/executor/optimizer/optimizer_registry.h"
#include "stagecraft/actors/reference/sum_order.h"
#include "stagecraft/compiler/graph/autocast_guard.h"
#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/tests/integration/failing_rank.h"
#include "stagecraft/tests/integration/heard_ranks.h"
#include "stagecraft/tests/integration/models.h"
#include "stagecraft/tests/integration/trained_copies.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/error_of.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft::tests::shard_rounds {
namespace {

using Catch::Matchers::ContainsSubstring;

using Run = TrainedCopies;
using Tensors = TensorsByName;

constexpr const ModelOptions& kModel = kShardedModel;
constexpr std::int64_t kBucket = 20000;  // bytes: several buckets a stage

/// Copies says how many there are, how they run, and what they share.
struct Copies {
  Sharing sharing = Sharing::Gradients;
  std::string builder = "1f1b";
  int copies = 2;
  int devices = 2;
  std::optional<std::int64_t> bucket_bytes = kBucket;
};

ReplicateOptions options_of(Sharing sharing, std::optional<std::int64_t> bucket_bytes = kBucket) {
  return {.bucket_bytes = bucket_bytes,
          .shard_optimizer = sharing == Sharing::States,
          .shard_gradients = sharing == Sharing::Gradients,
          .shard_parameters = sharing == Sharing::Weights};
}

Execution in_copies_of(const Program& program, const Copies& how) {
  const Schedule rows = build_schedule(
      how.builder, {.devices = how.devices, .microbatches = kMicrobatches / how.copies});
  return make_execution(
      program, in_copies(rows, how.copies), options_of(how.sharing, how.bucket_bytes));
}

Sharing in_rounds() {
  return GENERATE(Sharing::Gradients, Sharing::Weights);
}

/// One process that sums as the ranks of the execution do.
std::unique_ptr<Reference> one_process(const Execution& execution,
                                       const Optimizer& optimizer = AdamW{.lr = 1e-2},
                                       ReferenceOptions options = {.clip = 0.1, .seed = 9}) {
  options.sums = std::make_shared<const SumOrder>(sum_order_of(*execution.plan));
  return std::make_unique<Reference>(execution.program, optimizer, std::move(options));
}

ReferenceStep train(Reference& reference, std::int64_t until) {
  ReferenceStep last;
  while (reference.steps() < until) {
    const Data batch = data(reference.steps());
    last = reference.step(batch.inputs, batch.labels);
  }
  return last;
}

/// Checks that both have trained the same bits, in all weights that a stage uses.
void check_equal(Run& run, const Reference& reference, const ReferenceStep& last) {
  CHECK(run.last.mean_loss == last.mean_loss);
  CHECK(run.last.gradient_norm == last.gradient_norm);
  std::map<std::string, at::Tensor> trained;
  for (auto& [name, weight] : run.trainer.state_dict()) {
    trained.emplace(name, weight);
  }
  const StateDict expected = weights_of(reference);
  REQUIRE(!expected.empty());
  for (const auto& [name, weight] : expected) {
    CAPTURE(name);
    CHECK(at::equal(trained.at(name), weight));
  }
}

// ---- bits ---------------------------------------------------------------------------------------

TEST_CASE("copies that share gradients train the bits of one process that sums in their rounds",
          "[integration][shards]") {
  const auto [builder, devices, copies, stages] =
      GENERATE(table<std::string, int, int, int>({{"1f1b", 2, 2, 2},
                                                  {"gpipe", 1, 4, 1},
                                                  {"gpipe", 2, 2, 2},
                                                  {"zb-h1", 2, 2, 2},
                                                  {"interleaved", 2, 2, 4},
                                                  {"zb-v", 2, 2, 4},
                                                  {"chimera", 2, 1, 2},
                                                  {"chimera", 4, 1, 4},
                                                  {"chimera", 2, 2, 2},
                                                  {"dualpipe", 2, 1, 2}}));
  const auto bucket_bytes = GENERATE(std::optional<std::int64_t>(), kBucket);
  const Sharing sharing = in_rounds();
  CAPTURE(builder, copies, bucket_bytes.value_or(0), sharing);
  ModelOptions model = kModel;
  model.stages = stages;
  const Execution execution = in_copies_of(make_program(model),
                                           {.sharing = sharing,
                                            .builder = builder,
                                            .copies = copies,
                                            .devices = devices,
                                            .bucket_bytes = bucket_bytes});
  CHECK(std::ranges::any_of(execution.plan->tables.groups,
                            [&](const PlanGroup& group) { return group.sharing == sharing; }));
  const std::unique_ptr<Reference> reference = one_process(execution);
  Run run(execution);
  run.train(4);
  check_equal(run, *reference, train(*reference, 4));
}

TEST_CASE("the rounds of sums differ from one sum by rounding alone", "[integration][shards]") {
  const Program program = make_program(kModel);
  const TrainerOptions options{.keep_gradients = true, .seed = 9};
  Run rounds(in_copies_of(program, {.sharing = in_rounds()}), Sgd{.lr = 1e-2}, options);
  Run once(make_execution(program,
                          in_copies(build_schedule("1f1b", {.devices = 2, .microbatches = 2}), 2)),
           Sgd{.lr = 1e-2},
           options);
  rounds.train(1);
  once.train(1);
  const StateDict a = rounds.trainer.gradients();
  const StateDict b = once.trainer.gradients();
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    CAPTURE(a[i].first);
    CHECK(a[i].first == b[i].first);
    // Four summands in another order: three roundings each, of the largest partial sum.
    CHECK(at::allclose(a[i].second, b[i].second, 1e-5, 1e-6));
  }
}

TEST_CASE("every optimizer, with groups, kept gradients and two threads, updates what rounds sum",
          "[integration][shards]") {
  const Program program = make_program(kModel);
  const Sharing sharing = in_rounds();
  const std::vector<ParameterGroup> groups{{.match = "layer0.*", .frozen = true},
                                           {.match = "*.bias", .lr = 3e-2, .weight_decay = 0.0},
                                           {.match = "layer?.weight", .lr_scale = 0.5}};
  for (const OptimizerInfo& info : kOptimizers) {
    CAPTURE(info.name);
    Optimizer optimizer = optimizer_named(info.name).value();
    (void)set_setting(optimizer, "lr", 1e-2);
    const Execution execution = in_copies_of(program, {.sharing = sharing});
    Run run(execution,
            optimizer,
            {.groups = groups,
             .clip = 0.1,
             .keep_gradients = true,
             .seed = 9,
             .threads_per_worker = 2});
    const auto reference = one_process(
        execution,
        optimizer,
        {.groups = groups, .clip = 0.1, .keep_gradients = true, .seed = 9, .threads = 2});
    run.train(3);
    check_equal(run, *reference, train(*reference, 3));
    Tensors kept;
    for (const auto& [name, gradient] : run.trainer.gradients()) {
      kept.emplace(name, gradient);
    }
    for (const auto& [name, gradient] : reference->gradients()) {
      CAPTURE(name);
      CHECK(at::equal(kept.at(name), gradient));
    }
  }
}

TEST_CASE("rounds of sums in worker processes, over several batches an update, and by task",
          "[integration][shards][processes]") {
  const auto [builder, copies] = GENERATE(table<std::string, int>({{"1f1b", 2}, {"dualpipe", 1}}));
  const Execution execution = in_copies_of(
      make_program(kModel), {.sharing = in_rounds(), .builder = builder, .copies = copies});
  const auto on_batches = [](auto& trainer, auto&& last) {
    for (std::int64_t step = 0; step < 3; ++step) {
      const Data first = data(2 * step);
      trainer.accumulate(first.inputs, first.labels);
      const Data second = data(2 * step + 1);
      last(trainer.step(second.inputs, second.labels));
    }
  };
  const auto reference = one_process(execution);
  ReferenceStep expected;
  on_batches(*reference, [&](const ReferenceStep& step) { expected = step; });
  const auto check = [&](Run& run) {
    on_batches(run.trainer, [&](StepFuture step) { run.last = step.get(); });
    check_equal(run, *reference, expected);
  };
  SECTION("processes") {
    Run run(execution, AdamW{.lr = 1e-2}, {.clip = 0.1, .seed = 9}, [](int ranks) {
      return Cluster::spawn(ranks);
    });
    check(run);
  }
  SECTION("by task") {
    Run run(execution, AdamW{.lr = 1e-2}, {.clip = 0.1, .seed = 9, .dispatch = Dispatch::PerTask});
    check(run);
  }
}

TEST_CASE("copies of tied stages share gradients, and weights too", "[integration][shards][ties]") {
  const auto [builder, devices, copies, stages] =
      GENERATE(table<std::string, int, int, int>({{"1f1b", 2, 2, 2},
                                                  {"zb-h1", 2, 2, 2},
                                                  {"interleaved", 2, 2, 4},
                                                  {"zb-v", 2, 2, 4},
                                                  {"chimera", 2, 1, 2},
                                                  {"chimera", 2, 2, 2},
                                                  {"dualpipe", 2, 1, 2}}));
  const auto bucket_bytes = GENERATE(std::optional<std::int64_t>(), kBucket);
  const Sharing sharing = in_rounds();
  CAPTURE(builder, copies, bucket_bytes.value_or(0), sharing);
  const Execution execution = in_copies_of(tied_sharded_program(stages),
                                           {.sharing = sharing,
                                            .builder = builder,
                                            .copies = copies,
                                            .devices = devices,
                                            .bucket_bytes = bucket_bytes});
  CHECK(std::ranges::all_of(execution.plan->tables.groups, [&](const PlanGroup& group) {
    return group.kind == PlanGroup::Kind::Tie || group.sharing == sharing;
  }));
  const auto reference = one_process(execution);
  Run run(execution);
  run.train(3);
  check_equal(run, *reference, train(*reference, 3));
}

TEST_CASE("a tie that trains in part, in groups, with averages and kept gradients, in rounds",
          "[integration][shards][ties]") {
  const Execution execution = in_copies_of(tied_sharded_program(2), {.sharing = in_rounds()});
  const std::vector<ParameterGroup> groups{{.match = "embed.*", .frozen = true},
                                           {.match = "shared.bias", .lr_scale = 0.5}};
  Run run(execution,
          AdamW{.lr = 1e-2},
          {.groups = groups, .clip = 0.1, .average = 0.9, .keep_gradients = true, .seed = 9});
  const auto reference = one_process(
      execution,
      AdamW{.lr = 1e-2},
      {.groups = groups, .clip = 0.1, .average = 0.9, .keep_gradients = true, .seed = 9});
  run.train(3);
  check_equal(run, *reference, train(*reference, 3));
  Tensors kept;
  for (const auto& [name, gradient] : run.trainer.gradients()) {
    kept.emplace(name, gradient);
  }
  for (const auto& [name, gradient] : reference->gradients()) {
    CAPTURE(name);
    CHECK(at::equal(kept.at(name), gradient));
  }
}

TEST_CASE("weights that several parts of a stage use are gathered together",
          "[integration][shards]") {
  ModelOptions model = kModel;
  model.tied = true;
  model.stages = 1;
  const Execution execution =
      in_copies_of(make_program(model),
                   {.sharing = Sharing::Weights, .builder = "gpipe", .copies = 4, .devices = 1});
  const auto reference = one_process(execution);
  Run run(execution);
  run.train(3);
  check_equal(run, *reference, train(*reference, 3));
}

/// Its first stage hands on a view of a weight.
struct HandsOn : torch::nn::Module {
  HandsOn() {
    torch::manual_seed(5);
    weight = register_parameter("weight", torch::randn({64, 64}) * 0.1);
    other = register_parameter("other", torch::randn({64, 64}) * 0.1);
  }
  torch::Tensor forward(const torch::Tensor& x) {
    torch::Tensor view;
    const torch::Tensor y = stagecraft::stage("first", [&] {
      view = weight.view({1, 64, 64});
      return torch::tanh(x.matmul(other));
    });
    return stagecraft::stage("second", [&] { return y.matmul(view.squeeze(0)); });
  }
  torch::Tensor weight, other;
};

TEST_CASE("a stage may hand on a weight that is given back before it is read",
          "[integration][shards]") {
  HandsOn module;
  const torch::Tensor x = torch::randn({8, 64});
  const auto loss = [](const torch::Tensor& y, const torch::Tensor& label) {
    return torch::mse_loss(y, label);
  };
  const Program program =
      compile(module, {.inputs = {x}, .labels = {x}, .loss = loss, .microbatches = 4});
  const Execution execution =
      in_copies_of(program, {.sharing = Sharing::Weights, .bucket_bytes = 10000});
  const auto reference = one_process(execution);
  Run run(execution);
  ReferenceStep last;
  for (int step = 0; step < 3; ++step) {
    run.last = run.trainer.step({x}, {x}).get();
    last = reference->step({x}, {x});
  }
  check_equal(run, *reference, last);
}

TEST_CASE("recomputed and half-precision stages use gathered weights", "[integration][shards]") {
  const Program program = [] {
    const AutocastGuard autocast;
    AutocastGuard::set({.enabled = true, .dtype = at::kBFloat16});
    ModelOptions model = kModel;
    model.recompute = true;
    return make_program(model);
  }();
  const Execution execution =
      in_copies_of(program, {.sharing = Sharing::Weights, .builder = "zb-h1"});
  const auto reference = one_process(execution);
  Run run(execution);
  run.train(3);
  check_equal(run, *reference, train(*reference, 3));
}

TEST_CASE("evaluations run between steps, with the bits of whole weights, and change nothing",
          "[integration][shards]") {
  const Program program = make_program(kModel);
  const auto [builder, copies] = GENERATE(
      table<std::string, int>({{"1f1b", 2}, {"zb-h1", 2}, {"chimera", 1}, {"dualpipe", 1}}));
  const Copies how{.sharing = in_rounds(), .builder = builder, .copies = copies};
  CAPTURE(builder, how.sharing);
  Run run(in_copies_of(program, how));
  Run alone(in_copies_of(program, how));
  run.train(2);
  alone.train(2);
  const Data batch = data(7);
  const TemporaryFolder folder;
  run.trainer.save(folder.path() + "/a");
  Run whole(in_copies_of(program, {.sharing = Sharing::Nothing}));
  whole.trainer.load(folder.path() + "/a");
  CHECK(run.trainer.evaluate(batch.inputs, batch.labels) ==
        whole.trainer.evaluate(batch.inputs, batch.labels));
  // Also of microbatches of other sizes.
  for (const at::Tensor& tokens : {at::arange(12), at::arange(13), at::arange(5)}) {
    const at::Tensor input = tokens.remainder(16);
    CHECK(at::equal(run.trainer.predict({input}).at(0), whole.trainer.predict({input}).at(0)));
  }
  // Also between the batches of an update.
  for (Run* one : {&run, &alone}) {
    one->trainer.accumulate(batch.inputs, batch.labels);
  }
  (void)run.trainer.evaluate(batch.inputs, batch.labels);
  for (Run* one : {&run, &alone}) {
    one->last = one->trainer.step(batch.inputs, batch.labels).get();
  }
  run.train(4);
  alone.train(4);
  CHECK(same_bits(run.trainer.state_dict(), alone.trainer.state_dict()));
}

TEST_CASE("an evaluation holds the weights of two buckets at a time, as a step does",
          "[integration][shards][memory]") {
  constexpr std::int64_t kLayerBytes = (256 + 1) * 256 * 4;
  constexpr std::int64_t kLayerBucket = 300000;
  ModelOptions model = kModel;
  model.stages = 1;
  model.width = 256;
  const auto heard = std::make_shared<HeardRanks>();
  Run run(in_copies_of(make_program(model),
                       {.sharing = Sharing::Weights,
                        .builder = "gpipe",
                        .devices = 1,
                        .bucket_bytes = kLayerBucket}),
          AdamW{.lr = 1e-2},
          {.seed = 9, .before_instruction = hook_of(heard)});
  REQUIRE(run.trainer.plan().tables.buckets.size() == 4);  // a layer in each
  run.train(2);
  heard->begin();
  run.train(3);
  const Rank rank(GENERATE(0, 1));
  const std::size_t gathered_in_step = heard->most_gathered(rank);
  const std::int64_t bytes_in_step = heard->most_bytes(rank);
  heard->begin();
  const Data batch = data(7);
  SECTION("evaluate") {
    (void)run.trainer.evaluate(batch.inputs, batch.labels);
  }
  SECTION("predict") {
    (void)run.trainer.predict(batch.inputs);
  }
  CHECK(gathered_in_step == 2);
  CHECK(heard->most_gathered(rank) == 2);
  CAPTURE(bytes_in_step, heard->most_bytes(rank));
  CHECK(heard->most_bytes(rank) > kLayerBytes);
  CHECK(heard->most_bytes(rank) < 3 * kLayerBucket);  // a gather that goes on has a copy
  CHECK(3 * kLayerBucket < 4 * kLayerBytes);          // of all weights
  CHECK(heard->most_bytes(rank) <= bytes_in_step);
}

// ---- checkpoints --------------------------------------------------------------------------------

TEST_CASE("a checkpoint of any level of sharing goes on at any other",
          "[integration][shards][checkpoint]") {
  const TemporaryFolder folder;
  const Program program = GENERATE(false, true) ? tied_sharded_program(2) : make_program(kModel);
  const auto at_level = [&](Sharing sharing) {
    const Schedule rows = build_schedule("1f1b", {.devices = 2, .microbatches = 2});
    return make_execution(program,
                          in_copies(rows, 2),
                          options_of(sharing, sharing == Sharing::States ? 9000 : kBucket));
  };
  constexpr std::array kLevels{
      Sharing::Nothing, Sharing::States, Sharing::Gradients, Sharing::Weights};
  const Sharing writes = kLevels[GENERATE(0U, 1U, 2U, 3U)];
  const Sharing reads = kLevels[GENERATE(0U, 1U, 2U, 3U)];
  CAPTURE(writes, reads);
  Run writer(at_level(writes));
  writer.train(2);
  const Tensors written = tensors_saved_by(writer.trainer, folder.path() + "/a");
  Run reader(at_level(reads));
  reader.train(1);
  reader.trainer.load(folder.path() + "/a");
  CHECK(reader.trainer.steps() == 2);
  CHECK(equal(tensors_saved_by(reader.trainer, folder.path() + "/b"), written));
  reader.train(4);
  if (writes == reads || std::min(writes, reads) >= Sharing::Gradients) {
    writer.train(4);
    CHECK(equal(tensors_saved_by(reader.trainer, folder.path() + "/b"),
                tensors_saved_by(writer.trainer, folder.path() + "/a")));
  }
}

// ---- what is refused, and failures --------------------------------------------------------------

TEST_CASE("what cannot sum in rounds is refused", "[integration][shards][bad-input]") {
  const Program program = make_program(kModel);
  // Rank 0 ends its microbatches one by one, and rank 1 both at once.
  const Schedule unlike = Schedule::parse(
      "@microbatches 4\n@edges 0-1,2-3\n@replicas 0=2,1=3\n"
      "0F0 .   .   0B0 0F1 .   .   0B1 .   3F0 3F1 3B0 3B1 .   .\n"
      ".   1F0 1B0 .   .   1F1 1B1 .   2F0 2F1 .   .   .   2B0 2B1\n");
  CHECK_THAT(refusal([&] { (void)make_execution(program, unlike, options_of(in_rounds())); },
                     Errc::ScheduleInvalid),
             ContainsSubstring("stages 0 and 2 are copies of one stage in the schedule") &&
                 ContainsSubstring("shard_optimizer"));
  const TrainerOptions decided{
      .dispatch = Dispatch::Decided,
      .decide = [](const Schedule&, const DispatchedColumn&) { return std::vector<Task>(); }};
  CHECK_THAT(refusal([&] { Run run(in_copies_of(program, {}), AdamW{}, decided); }),
             ContainsSubstring("the rounds in which copies sum gradients"));
}

TEST_CASE("a rank that fails in the midst of the rounds ends the step, and the next one is whole",
          "[integration][shards][failure]") {
  const Execution execution = in_copies_of(make_program(kModel), {.sharing = in_rounds()});
  const auto failing = std::make_shared<FailingRank>();
  Run run(execution,
          AdamW{.lr = 1e-2},
          {.clip = 0.1, .seed = 9, .before_instruction = hook_of(failing)});
  run.train(1);
  const StateDict before = run.trainer.state_dict();
  const auto& list = run.trainer.plan().list_of(Rank(2)).instructions;
  const Op op = GENERATE(Op::Start, Op::Finish);
  const auto second =
      std::ranges::find_if(list, [&](const Instruction& i) { return i.op == op && i.round == 1; });
  REQUIRE(second != list.end());
  failing->fail_at({Rank(2), second->id});
  CHECK(error_of(step_of(run.trainer, 1)).context().rank == Rank(2));
  CHECK(same_bits(run.trainer.state_dict(), before));
  run.train(3);
  const auto reference = one_process(execution);
  check_equal(run, *reference, train(*reference, 3));
}

TEST_CASE("a rank that fails in the midst of an evaluation's gathers ends it, and changes nothing",
          "[integration][shards][failure]") {
  const Execution execution = in_copies_of(make_program(kModel), {.sharing = Sharing::Weights});
  const auto failing = std::make_shared<FailingRank>();
  const auto heard = std::make_shared<HeardRanks>();
  Run run(
      execution,
      AdamW{.lr = 1e-2},
      {.clip = 0.1, .seed = 9, .before_instruction = [heard, failing](Rank rank, const auto& i) {
         (*heard)(rank, i);
         (*failing)(rank, i);
       }});
  run.train(1);
  const StateDict weights = run.trainer.state_dict();
  const Data batch = data(7);
  const auto evaluate = [&] { return run.trainer.evaluate(batch.inputs, batch.labels); };
  heard->begin();
  const double loss = evaluate();
  const std::vector<Instruction> list = heard->list(Rank(2));
  const Op op = GENERATE(Op::Start, Op::Finish, Op::Release);
  const auto second = std::ranges::find_if(list, [&](const Instruction& i) {
    return i.op == op && (i.round == 1 || op == Op::Release);
  });
  REQUIRE(second != list.end());
  failing->fail_at({Rank(2), second->id});
  CHECK(thrown_error([&] { (void)evaluate(); }).context().rank == Rank(2));
  CHECK(evaluate() == loss);
  CHECK(same_bits(run.trainer.state_dict(), weights));
  run.train(3);
  const auto reference = one_process(execution);
  check_equal(run, *reference, train(*reference, 3));
}

TEST_CASE("a lost rank's shard comes from its mirror when gradients are in shards",
          "[integration][shards][processes][recovery]") {
  const auto [builder, copies] = GENERATE(table<std::string, int>({{"1f1b", 2}, {"chimera", 1}}));
  const Execution execution = in_copies_of(
      make_program(kModel), {.sharing = in_rounds(), .builder = builder, .copies = copies});
  Run run(execution, AdamW{.lr = 1e-2}, {.clip = 0.1, .seed = 9, .mirror = true}, [](int ranks) {
    return Cluster::spawn(ranks);
  });
  run.train(2);
  const Rank last(execution.layout.ranks() - 1);
  REQUIRE(kill(static_cast<pid_t>(run.cluster.workers()[last.index()].process), SIGKILL) == 0);
  CHECK(error_of(step_of(run.trainer, 2)).code() == Errc::WorkerLost);
  run.cluster.replace(last);
  CHECK(run.trainer.recover() >= 1);
  run.train(4);
  const auto reference = one_process(execution);
  check_equal(run, *reference, train(*reference, 4));
}

}  // namespace
}  // namespace stagecraft::tests::shard_rounds
