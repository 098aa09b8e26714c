/// Tests the values that training steps leave on their ranks: they are those of the step, they go
/// to actors without passing through the driver, and they fail with their step.
#include "stagecraft/actors/trainer/steps/kept_futures.h"

#include <csignal>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include <ATen/ops/cat.h>
#include <c10/util/intrusive_ptr.h>

#include "stagecraft/futures/wait.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/builders/schedule_for.h"
#include "stagecraft/scheduler/strategy/strategy_of.h"
#include "stagecraft/tests/integration/models.h"
#include "stagecraft/tests/integration/remote_classes.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/error_of.h"
#include "stagecraft/tests/support/eventually.h"
#include "stagecraft/tests/support/refusal.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft::tests {
namespace {
// Names of other tests in the same file of the build would meet these.
namespace kept_cases {

using Catch::Matchers::ContainsSubstring;

constexpr std::int64_t kWidth = 6;
constexpr std::int64_t kRows = 12;

/// Regression returns its prediction, what its first stage made, a view of a weight, and its input.
struct Regression : torch::nn::Module {
  torch::nn::Linear in{register_module("in", torch::nn::Linear(kWidth, kWidth))};
  torch::nn::Linear out{register_module("out", torch::nn::Linear(kWidth, 1))};

  std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor> forward(at::Tensor x) {
    const auto h = stage("in", [&] { return torch::tanh(in(x)); });
    const auto [y, w] =
        stage("out", [&] { return std::tuple(out(h), out->weight.view({kWidth})); });
    return {y, h, w, x};
  }
};

at::Tensor loss_of(const at::Tensor& y,
                   const at::Tensor& h,
                   const at::Tensor&,
                   const at::Tensor&,
                   const at::Tensor& label) {
  return torch::mse_loss(y, label) + h.mean() * 0.1;
}

at::Tensor rows(int step) {
  return at::sin(at::arange(kRows * kWidth, at::kFloat) * (step + 1)).reshape({kRows, kWidth});
}
at::Tensor labels(int step) {
  return rows(step).sum(1, /*keepdim=*/true);
}

Program made(const KeptValues& keep, const Recompute& recompute = {}) {
  torch::manual_seed(4);
  return compile(std::make_shared<Regression>(),
                 {.inputs = {rows(0)},
                  .labels = {labels(0)},
                  .loss = loss_of,
                  .microbatches = kMicrobatches,
                  .recompute = recompute,
                  .keep = keep});
}

Cluster cluster_of(bool has_processes, int ranks) {
  return has_processes ? Cluster::spawn(ranks, {.program = STAGECRAFT_REMOTE_WORKER})
                       : Cluster::local(ranks);
}

/// Reads all microbatches of a value and joins them.
at::Tensor joined(const std::vector<Future<at::Tensor>>& parts) {
  std::vector<at::Tensor> all;
  for (const Future<at::Tensor>& part : parts) {
    REQUIRE(part.wait_until(patience()));
    all.push_back(part.get());
  }
  return at::cat(all);
}

/// Returns an output of the module with the trainer's weights, microbatch by microbatch.
template <std::size_t Number>
at::Tensor expected_output(Trainer& trainer, const at::Tensor& batch) {
  const at::NoGradGuard no_grad;
  Regression module;
  trainer.copy_to(module);
  std::vector<at::Tensor> all;
  for (const at::Tensor& part : batch.chunk(kMicrobatches)) {
    all.push_back(std::get<Number>(module.forward(part.clone())));  // aligned, as ranks have it
  }
  return at::cat(all);
}

/// Runs steps and compares what they leave with what the step and the module before it say.
void check_values(Trainer& trainer) {
  for (int step = 0; step < 3; ++step) {
    CAPTURE(step);
    const at::Tensor prediction = expected_output<0>(trainer, rows(step)),
                     hidden = expected_output<1>(trainer, rows(step));
    const StepFuture begun = trainer.step(rows(step), labels(step));
    const StepResult result = begun.get();
    REQUIRE(begun.losses().size() == result.losses.size());
    for (std::size_t m = 0; m < result.losses.size(); ++m) {
      CHECK(begun.losses()[m].get().item<double>() == result.losses[m]);
    }
    CHECK(at::equal(joined(begun.outputs()), prediction));
    CHECK(at::equal(joined(begun.outputs(1)), hidden));
    CHECK_FALSE(begun.outputs()[0].get().requires_grad());
  }
}

const KeptValues kAll{.losses = true, .outputs = {1, 0, 2}};

TEST_CASE("a step leaves its losses and outputs on its ranks", "[integration][kept]") {
  const bool has_processes = GENERATE(false, true);
  const auto* schedule = GENERATE("gpipe", "1f1b", "zb-h1", "dag-1f1b");
  CAPTURE(has_processes, schedule);
  const Program program = made(kAll);
  const Cluster cluster = cluster_of(has_processes, 2);
  Trainer trainer(cluster, program, schedule, AdamW{.lr = 1e-2});
  check_values(trainer);
}

TEST_CASE("copies, recomputed stages and steps by task leave the same", "[integration][kept]") {
  const Program program = made(kAll, GENERATE(Recompute::nothing(), Recompute::stages()));
  const Dispatch dispatch = GENERATE(Dispatch::Plan, Dispatch::PerTask);
  Trainer copies(Cluster::local(4),
                 program,
                 in_copies(one_f_one_b(2, kMicrobatches / 2), 2),
                 AdamW{.lr = 1e-2},
                 {.dispatch = dispatch});
  check_values(copies);
}

TEST_CASE("keeping values changes no bit of the training", "[integration][kept]") {
  Trainer keeps(Cluster::local(2), made(kAll), "1f1b", AdamW{.lr = 1e-2});
  Trainer plain(Cluster::local(2), made({}), "1f1b", AdamW{.lr = 1e-2});
  for (int step = 0; step < 3; ++step) {
    CHECK(keeps.step(rows(step), labels(step)).get().losses ==
          plain.step(rows(step), labels(step)).get().losses);
  }
  CHECK(same_bits(keeps.state_dict(), plain.state_dict()));
}

TEST_CASE("values go from the ranks that trained to actors of other ranks", "[integration][kept]") {
  const bool has_processes = GENERATE(false, true);
  CAPTURE(has_processes);
  const Cluster cluster = cluster_of(has_processes, 3);
  const auto book = cluster.spawn<Notebook>(on(Rank(2)), "metrics");
  Trainer trainer(cluster, made(kAll), "1f1b", AdamW{.lr = 1e-2});
  std::vector<Future<double>> sums, losses;
  std::vector<StepFuture> steps;
  for (int step = 0; step < 3; ++step) {
    steps.push_back(trainer.step(rows(step), labels(step)));
    for (int m = 0; m < kMicrobatches; ++m) {  // before anything has run
      const auto microbatch = static_cast<std::size_t>(m);
      sums.push_back(book.call<&Notebook::sum>(steps.back().outputs(1)[microbatch]));
      losses.push_back(book.call<&Notebook::sum>(steps.back().losses()[microbatch]));
    }
  }
  REQUIRE(wait_all(sums, patience()));
  REQUIRE(wait_all(losses, patience()));
  for (std::size_t step = 0; step < steps.size(); ++step) {
    const StepResult result = steps[step].get();
    for (std::size_t m = 0; m < kMicrobatches; ++m) {
      CHECK(losses[step * kMicrobatches + m].get() == result.losses[m]);
      CHECK(sums[step * kMicrobatches + m].get() ==
            steps[step].outputs(1)[m].get().sum().item<double>());
    }
  }
}

TEST_CASE("a value stays as its step made it, and its memory goes with its futures",
          "[integration][kept]") {
  Trainer trainer(Cluster::local(2), made(kAll), "1f1b", AdamW{.lr = 1e-2});
  const at::Tensor weight = trainer.state_dict().at(2).second.reshape({kWidth}).clone();
  StepFuture first = trainer.step(rows(0), labels(0));
  (void)trainer.step(rows(1), labels(1)).get();
  CHECK(at::equal(first.outputs(2)[0].get(), weight));  // the weight has changed twice since
  c10::weak_intrusive_ptr<c10::TensorImpl> watched(first.outputs()[0].get().getIntrusivePtr());
  CHECK_FALSE(watched.expired());
  first = StepFuture();
  CHECK(eventually([&] { return watched.expired(); }));
}

TEST_CASE("batches of an update and of another shape leave their values", "[integration][kept]") {
  Trainer trainer(Cluster::local(2), made(kAll), "1f1b", AdamW{.lr = 1e-2});
  const auto part = [](const at::Tensor& all) { return all.slice(0, 0, kRows / 2 + 2); };
  const at::Tensor whole = expected_output<0>(trainer, rows(0)),
                   less = expected_output<0>(trainer, part(rows(1)));
  const StepFuture one = trainer.accumulate(rows(0), labels(0));
  const StepFuture two = trainer.step(part(rows(1)), part(labels(1)));
  (void)two.get();
  CHECK(at::equal(joined(one.outputs()), whole));
  CHECK(at::equal(joined(two.outputs()), less));
}

TEST_CASE("values of a step that fails have its error, also in calls that wait for them",
          "[integration][kept][failure]") {
  const bool has_processes = GENERATE(false, true);
  CAPTURE(has_processes);
  const Cluster cluster = cluster_of(has_processes, 3);
  const auto book = cluster.spawn<Notebook>(on(Rank(2)), "metrics");
  Trainer trainer(cluster, made(kAll), "1f1b", AdamW{});
  const StepFuture failing = trainer.step(at::full({kRows, kWidth}, NAN), labels(0));
  const Future<double> waits = book.call<&Notebook::sum>(failing.outputs()[0]);
  const Error error = error_of(failing);
  CHECK(failure_of(failing.losses()[0]) == error.code());
  CHECK(failure_of(waits) == error.code());
  const StepFuture next = trainer.step(rows(0), labels(0));
  CHECK(next.losses()[0].get().item<double>() == next.get().losses[0]);
}

TEST_CASE("a lost rank fails its values by name; its successor leaves others",
          "[integration][kept][processes]") {
  const Cluster cluster = cluster_of(true, 2);
  Trainer trainer(cluster, made(kAll), "1f1b", AdamW{}, {.mirror = true});
  const StepFuture unread = trainer.step(rows(0), labels(0));
  (void)unread.get();
  ::kill(static_cast<pid_t>(cluster.workers()[1].process), SIGKILL);
  CHECK(error_of(trainer.step(rows(1), labels(1))).code() == Errc::WorkerLost);
  CHECK(failure_of(unread.outputs()[0]) == Errc::WorkerLost);
  const StepFuture refused = trainer.step(rows(1), labels(1));  // the rank has no successor yet
  CHECK(error_of(refused).code() == Errc::WorkerLost);
  CHECK(failure_of(refused.losses()[0]) == Errc::ClusterMember);
  cluster.replace(Rank(1));
  (void)trainer.recover();
  const StepFuture next = trainer.step(rows(1), labels(1));
  CHECK(next.losses()[0].get().item<double>() == next.get().losses[0]);
}

TEST_CASE("values of steps that a trainer did not finish end with it", "[integration][kept]") {
  StepFuture step;
  {
    const auto gate = std::make_shared<Promise<std::monostate>>();
    TrainerOptions options;
    options.before_instruction = [open = gate->future()](Rank, const Instruction&) {
      (void)open.wait_until(patience());
    };
    Trainer trainer(Cluster::local(2), made(kAll), "1f1b", AdamW{}, options);
    step = trainer.step(rows(0), labels(0));
    (void)step.future().on_ready([gate] { gate->set_value({}); });
  }
  CHECK(failure_of(step.losses()[0]) == Errc::Cancelled);
}

TEST_CASE("what a program does not keep, or no rank makes, is refused by name",
          "[integration][kept][refusals]") {
  const auto refused = [](const KeptValues& keep) { return refusal([&] { (void)made(keep); }); };
  CHECK_THAT(refused({.outputs = {4}}),
             ContainsSubstring("output 4") && ContainsSubstring("the module returns 4"));
  CHECK_THAT(refused({.outputs = {-1}}), ContainsSubstring("output -1"));
  CHECK_THAT(refused({.outputs = {1, 0, 1}}), ContainsSubstring("twice"));
  CHECK_THAT(refused({.outputs = {3}}),
             ContainsSubstring("output 3") && ContainsSubstring("no operator makes"));
  Trainer trainer(Cluster::local(2), made({.outputs = {1}}), "1f1b", AdamW{});
  const StepFuture step = trainer.step(rows(0), labels(0));
  CHECK_THAT(refusal([&] { (void)step.losses(); }), ContainsSubstring("keep.losses"));
  CHECK_THAT(refusal([&] { (void)step.outputs(0); }), ContainsSubstring("keep.outputs"));
  CHECK_THAT(refusal([&] { (void)step.outputs(-1); }), ContainsSubstring("from 0"));
  CHECK(step.outputs(1).size() == kMicrobatches);
  (void)step.get();
}

}  // namespace kept_cases
}  // namespace
}  // namespace stagecraft::tests
