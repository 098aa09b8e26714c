/// Tests stages whose modules stay ordinary C++: they train as in one process, in threads and in
/// processes, and say what is wrong with them.
#include "stagecraft/compiler/native/native_stage.h"

#include <csignal>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <ATen/autocast_mode.h>

#include "stagecraft/actors/launch/launcher.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/tests/integration/models.h"
#include "stagecraft/tests/integration/native_modules.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/error_of.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft::tests {
namespace {
// Names of other tests in the same file of the build would meet these.
namespace native_stage_cases {

using Catch::Matchers::ContainsSubstring;

constexpr int kRows = 12;

void register_once() {
  static const bool registered = (register_native_modules(), true);
  CHECK(registered);
}

struct LoopNet : torch::nn::Module {
  torch::nn::Linear in{register_module("in", torch::nn::Linear(kNativeWidth, kNativeWidth))};
  std::shared_ptr<Loop> loop = register_module("loop", std::make_shared<Loop>());
  torch::nn::Linear out{register_module("out", torch::nn::Linear(kNativeWidth, 1))};

  at::Tensor forward(at::Tensor x) {
    const auto h = stage("in", [&] { return torch::tanh(in(x)); });
    const auto [all, more] = native_stage("loop", loop, h, h * 0.5);
    return stage("out", [&, all = all, more = more] { return out(all + more) + h.mean(); });
  }
};

at::Tensor rows(int step) {
  const auto count = at::arange(kRows * kNativeWidth, at::kFloat);
  return at::sin(count * (step + 1)).reshape({kRows, kNativeWidth});
}
at::Tensor labels(int step) {
  return rows(step).sum(1, /*keepdim=*/true);
}

template <class Net>
Program program_of(Net& net, const Recompute& recompute = {}) {
  register_once();
  return compile(net,
                 {.inputs = {rows(0)},
                  .labels = {labels(0)},
                  .loss = torch::mse_loss,
                  .microbatches = kMicrobatches,
                  .recompute = recompute});
}

Program loop_program(const Recompute& recompute = {}) {
  torch::manual_seed(4);
  const auto net = std::make_shared<LoopNet>();
  return program_of(*net, recompute);
}

/// Around has a native stage between two others.
template <class M>
struct Around : torch::nn::Module {
  Around(std::string n, std::shared_ptr<M> m)
      : name(std::move(n)), module(register_module("module", std::move(m))) {}
  at::Tensor forward(at::Tensor x) {
    const at::Tensor h = stage("in", in, x);
    const at::Tensor made = native_stage(name, module, h);
    return stage("out", [&] { return made.sum() * h.sum(1, /*keepdim=*/true); });
  }
  std::string name;
  std::shared_ptr<M> module;
  torch::nn::Linear in{register_module("in", torch::nn::Linear(kNativeWidth, kNativeWidth))};
};

template <class M>
std::string refusal_of(const std::string& name, std::shared_ptr<M> module) {
  Around<M> net(name, std::move(module));
  return thrown_error([&] { (void)program_of(net); }).what();
}

void check_equal_to_one_process(const Cluster& cluster,
                                const Program& program,
                                const Schedule& schedule) {
  Trainer trainer(cluster, program, schedule, AdamW{.lr = 1e-2}, {.clip = 0.5, .seed = 5});
  Reference reference(program, AdamW{.lr = 1e-2}, {.clip = 0.5, .seed = 5, .threads = 1});
  for (int step = 0; step < 3; ++step) {
    const StepResult result = trainer.step(rows(step), labels(step)).get();
    const ReferenceStep expected = reference.step({rows(step)}, {labels(step)});
    CHECK(result.losses == expected.losses);
    CHECK(testing::same_norm(result.gradient_norm, expected.gradient_norm));
  }
  CHECK(same_bits(weights_of(trainer), weights_of(reference)));
}

TEST_CASE("a native stage trains as in one process", "[integration][native-stage]") {
  const auto* name = GENERATE("gpipe", "1f1b", "zb-h1");
  CAPTURE(name);
  const Program program = loop_program();
  check_equal_to_one_process(
      Cluster::local(3), program, schedule_for(name, program.stage_graph(), kMicrobatches));
}

TEST_CASE("a native stage is recomputed like others", "[integration][native-stage]") {
  const Program kept = loop_program(), again = loop_program(Recompute::stages());
  const Schedule schedule = one_f_one_b(3, kMicrobatches);
  Trainer a(Cluster::local(3), kept, schedule, AdamW{}),
      b(Cluster::local(3), again, schedule, AdamW{});
  for (int step = 0; step < 2; ++step) {
    CHECK(a.step(rows(step), labels(step)).get().losses ==
          b.step(rows(step), labels(step)).get().losses);
  }
  CHECK(same_bits(a.state_dict(), b.state_dict()));
}

TEST_CASE("a native stage's results are those of plain LibTorch", "[integration][native-stage]") {
  torch::manual_seed(4);
  LoopNet net;
  const Program program = program_of(net);
  Trainer trainer(
      Cluster::local(3), program, one_f_one_b(3, kMicrobatches), Sgd{.lr = 0.1}, {.seed = 5});
  torch::optim::SGD plain(net.parameters(), 0.1);
  for (int step = 0; step < 3; ++step) {
    const double pipelined = trainer.step(rows(step), labels(step)).get().mean_loss;
    plain.zero_grad();
    double mean = 0;
    for (int m = 0; m < kMicrobatches; ++m) {
      const auto part = [&](const at::Tensor& batch) { return batch.chunk(kMicrobatches)[m]; };
      const at::Tensor loss =
          torch::mse_loss(net.forward(part(rows(step))), part(labels(step))) / kMicrobatches;
      loss.backward();
      mean += loss.item<double>();
    }
    plain.step();
    CHECK_THAT(pipelined, Catch::Matchers::WithinRel(mean, 1e-5));
  }
  const at::Tensor trained = net.loop->turns.clone();
  CHECK(trained.item<std::int64_t>() >= 3 * kMicrobatches * 2);
  CHECK(trainer.state_dict().size() == net.parameters().size() + net.buffers().size());
  const at::Tensor predicted = trainer.predict({rows(3)}).front();
  trainer.copy_to(net);
  CHECK(net.loop->turns.equal(trained));
  net.eval();
  std::vector<at::Tensor> parts;
  for (const at::Tensor& part : rows(3).chunk(kMicrobatches)) {
    parts.push_back(net.forward(part));
  }
  CHECK_THAT((predicted - at::cat(parts)).abs().max().item<double>(),
             Catch::Matchers::WithinAbs(0, 1e-5));
}

TEST_CASE("a native stage runs in processes that register it",
          "[integration][native-stage][processes]") {
  const Program program = loop_program();
  const Schedule schedule = schedule_for("1f1b", program.stage_graph(), kMicrobatches);
  const Cluster cluster = Cluster::spawn(3, {.program = STAGECRAFT_NATIVE_WORKER});
  check_equal_to_one_process(cluster, program, schedule);

  const TemporaryFolder folder;
  const std::string file = folder.path() + "/native-stage.ckpt";
  Trainer first(cluster, program, schedule, AdamW{.lr = 1e-2}, {.seed = 5});
  (void)first.step(rows(0), labels(0)).get();
  first.save(file);
  Trainer second(Cluster::local(3), loop_program(), schedule, AdamW{.lr = 1e-2}, {.seed = 5});
  second.load(file);
  CHECK(first.step(rows(1), labels(1)).get().losses ==
        second.step(rows(1), labels(1)).get().losses);
  CHECK(same_bits(first.state_dict(), second.state_dict()));
}

TEST_CASE("a native stage may have custom functions and hooks, also in processes",
          "[integration][native-stage][processes]") {
  const bool has_processes = GENERATE(false, true);
  CAPTURE(has_processes);
  torch::manual_seed(4);
  Around<Custom> net("custom", std::make_shared<Custom>());
  const Program program = program_of(net);
  const Cluster cluster =
      has_processes ? Cluster::spawn(3, {.program = STAGECRAFT_NATIVE_WORKER}) : Cluster::local(3);
  Trainer trainer(cluster, program, one_f_one_b(3, kMicrobatches), Sgd{.lr = 1e-3});
  torch::optim::SGD plain(net.parameters(), 1e-3);
  for (int step = 0; step < 2; ++step) {
    (void)trainer.step(rows(step), labels(step)).get();
    plain.zero_grad();
    for (int m = 0; m < kMicrobatches; ++m) {
      const auto part = [&](const at::Tensor& batch) { return batch.chunk(kMicrobatches)[m]; };
      (torch::mse_loss(net.forward(part(rows(step))), part(labels(step))) / kMicrobatches)
          .backward();
    }
    plain.step();
  }
  for (const auto& [name, weight] : trainer.state_dict()) {
    CAPTURE(name);
    CHECK(at::allclose(weight, net.named_parameters()[name]));
  }
}

/// Sets autocast to bfloat16 while it lives.
struct Narrowed {
  Narrowed() {
    at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
    at::autocast::set_autocast_enabled(at::kCPU, true);
  }
  ~Narrowed() {
    at::autocast::set_autocast_enabled(at::kCPU, false);
    at::autocast::clear_cache();
  }
  Narrowed(const Narrowed&) = delete;
  Narrowed& operator=(const Narrowed&) = delete;
};

TEST_CASE("a native stage computes under the autocast of compile", "[integration][native-stage]") {
  torch::manual_seed(4);
  Around<Wider> net("wider", std::make_shared<Wider>(kNativeWidth + 1));
  const Schedule schedule = one_f_one_b(3, kMicrobatches);
  const Program wide = program_of(net);
  std::optional<Program> narrow;
  {
    const Narrowed bfloat16;
    narrow.emplace(program_of(net));
  }
  check_equal_to_one_process(Cluster::local(3), *narrow, schedule);
  Trainer a(Cluster::local(3), wide, schedule, AdamW{}),
      b(Cluster::local(3), *narrow, schedule, AdamW{});
  const double exact = a.step(rows(0), labels(0)).get().mean_loss;
  const double rounded = b.step(rows(0), labels(0)).get().mean_loss;
  CHECK(rounded != exact);
  CHECK_THAT(rounded, Catch::Matchers::WithinRel(exact, 0.05));
}

TEST_CASE("a native stage takes batches of another shape", "[integration][native-stage]") {
  torch::manual_seed(4);
  LoopNet net;
  const Program program = program_of(net);
  Trainer trainer(Cluster::local(3), program, one_f_one_b(3, kMicrobatches), Sgd{.lr = 0.1});
  for (int step = 0; step < 2; ++step) {
    const auto part = [&](const at::Tensor& batch, int m) {
      return batch.slice(0, 0, 2 * kMicrobatches).chunk(kMicrobatches)[m];
    };
    trainer.copy_to(net);
    double mean = 0;
    for (int m = 0; m < kMicrobatches; ++m) {
      mean +=
          torch::mse_loss(net.forward(part(rows(step), m)), part(labels(step), m)).item<double>() /
          kMicrobatches;
    }
    const StepResult result = trainer
                                  .step(rows(step).slice(0, 0, 2 * kMicrobatches),
                                        labels(step).slice(0, 0, 2 * kMicrobatches))
                                  .get();
    CHECK_THAT(result.mean_loss, Catch::Matchers::WithinRel(mean, 1e-5));
  }
}

TEST_CASE("copies of a native stage have modules of their own", "[integration][native-stage]") {
  Around<Wider> net("wider", std::make_shared<Wider>(kNativeWidth + 1));
  const Program program = program_of(net);
  const Schedule schedule = in_copies(one_f_one_b(3, kMicrobatches / 2), 2);
  Trainer copies(Cluster::local(6), program, schedule, Sgd{.lr = 1e-3});
  Trainer one(Cluster::local(3), program, one_f_one_b(3, kMicrobatches), Sgd{.lr = 1e-3});
  for (int step = 0; step < 3; ++step) {
    CHECK_THAT(
        copies.step(rows(step), labels(step)).get().mean_loss,
        Catch::Matchers::WithinRel(one.step(rows(step), labels(step)).get().mean_loss, 1e-5));
  }
}

TEST_CASE("a native stage is refused where its results change their form in a step (NV-2)",
          "[integration][native-stage][failure]") {
  register_once();
  Around<Growing> net("growing", std::make_shared<Growing>());
  const Program program = program_of(net);
  Trainer trainer(Cluster::local(3), program, one_f_one_b(3, kMicrobatches), AdamW{});
  (void)trainer.step(rows(0), labels(0)).get();
  const Error error = error_of(trainer.step(rows(0) * 1000, labels(0)));
  CHECK(error.code() == Errc::CompileShape);
  CHECK_THAT(error.what(),
             ContainsSubstring("\"growing\" returns Float of shape [6, 6]") &&
                 ContainsSubstring("Float of shape [3, 6] when it was captured"));
  CHECK(error.context().rank == Rank(1));
}

/// DecayNet has its native stage first. Its buffers are written, and it owes no gradient.
struct DecayNet : torch::nn::Module {
  std::shared_ptr<Decay> decay = register_module("decay", std::make_shared<Decay>());
  torch::nn::Linear out{register_module("out", torch::nn::Linear(kNativeWidth, 1))};
  at::Tensor forward(at::Tensor x) { return stage("out", out, native_stage("decay", decay, x)); }
};

TEST_CASE("a native stage may be first, recomputed or not, and split",
          "[integration][native-stage]") {
  const auto* name = GENERATE("1f1b", "zb-h1");
  const auto recompute = GENERATE(Recompute::nothing(), Recompute::stages());
  CAPTURE(name, recompute == Recompute::stages());
  torch::manual_seed(4);
  DecayNet net;
  const Program program = program_of(net, recompute);
  check_equal_to_one_process(
      Cluster::local(2), program, schedule_for(name, program.stage_graph(), kMicrobatches));
}

TEST_CASE("frozen parameters of a native stage stay, and evaluation changes nothing",
          "[integration][native-stage]") {
  torch::manual_seed(4);
  LoopNet net;
  net.loop->layer->weight.set_requires_grad(false);
  const at::Tensor frozen = net.loop->layer->weight.clone();
  const Program program = program_of(net);
  Trainer trainer(Cluster::local(3), program, one_f_one_b(3, kMicrobatches), AdamW{.lr = 1e-2});
  (void)trainer.step(rows(0), labels(0)).get();
  trainer.copy_to(net);
  CHECK(net.loop->layer->weight.equal(frozen));
  const StateDict before = trainer.state_dict();
  CHECK(trainer.evaluate(rows(1), labels(1)) > 0);
  CHECK(same_bits(trainer.state_dict(), before));
}

TEST_CASE("a rank that is replaced has its native stage again",
          "[integration][native-stage][processes]") {
  const Program program = loop_program();
  const Cluster cluster = Cluster::spawn(3, {.program = STAGECRAFT_NATIVE_WORKER});
  const Schedule schedule = one_f_one_b(3, kMicrobatches);
  const TrainerOptions options{.seed = 5, .mirror = true};
  Trainer trainer(cluster, program, schedule, AdamW{.lr = 1e-2}, options);
  Trainer unbroken(Cluster::local(3), program, schedule, AdamW{.lr = 1e-2}, options);
  (void)trainer.step(rows(0), labels(0)).get();
  ::kill(static_cast<pid_t>(cluster.workers()[1].process), SIGKILL);
  CHECK(error_of(trainer.step(rows(1), labels(1))).code() == Errc::WorkerLost);
  cluster.replace(Rank(1));
  for (std::int64_t step = trainer.recover(); step < 3; ++step) {
    (void)trainer.step(rows(static_cast<int>(step)), labels(static_cast<int>(step))).get();
  }
  for (int step = 0; step < 3; ++step) {
    (void)unbroken.step(rows(step), labels(step)).get();
  }
  CHECK(same_bits(trainer.state_dict(), unbroken.state_dict()));
}

TEST_CASE("what a native stage throws arrives with its place",
          "[integration][native-stage][failure]") {
  const Program program = loop_program();
  Trainer trainer(Cluster::local(3), program, one_f_one_b(3, kMicrobatches), AdamW{});
  const at::Tensor broken = rows(0);
  broken.select(0, kRows - 1).fill_(NAN);
  const Error error = error_of(trainer.step(broken, labels(0)));
  CHECK_THAT(error.what(), ContainsSubstring("the loop would not end"));
  CHECK(error.context().rank == Rank(1));
  CHECK(error.context().stage == StageId(1));
  CHECK(error.context().microbatch == Microbatch(kMicrobatches - 1));
  CHECK(trainer.step(rows(0), labels(0)).get().step == 1);
}

TEST_CASE("a native stage that a program cannot have is refused by name",
          "[integration][native-stage][refusals]") {
  CHECK_THAT(refusal_of("unheard", std::make_shared<Selecting>()),
             ContainsSubstring("no native stage \"unheard\" is registered") &&
                 ContainsSubstring("sc::register_native_stage") && ContainsSubstring("\"loop\""));
  CHECK_THAT(refusal_of("drawing", std::make_shared<Drawing>()),
             ContainsSubstring("draws random numbers") && ContainsSubstring("\"drawing\""));
  CHECK_THAT(refusal_of("writing", std::make_shared<Writing>()),
             ContainsSubstring("native stage \"writing\" writes its argument 0 in place"));
  CHECK_THAT(refusal_of("selecting", std::make_shared<Selecting>()),
             ContainsSubstring("native stage \"selecting\" returns") &&
                 ContainsSubstring("the same form for every microbatch"));
  CHECK_THAT(refusal_of("wider", std::make_shared<Wider>(kNativeWidth)),
             ContainsSubstring("native stage \"wider\"") && ContainsSubstring("layer.weight") &&
                 ContainsSubstring("one like the module that was compiled"));
  CHECK_THAT(refusal_of("nothing", std::make_shared<Wider>(kNativeWidth)),
             ContainsSubstring("\"nothing\" made no module"));
  static const auto kept = std::make_shared<Writing>();
  register_native_stage("kept", [] { return kept; });
  CHECK_THAT(refusal_of("kept", std::make_shared<Wider>(kNativeWidth)),
             ContainsSubstring("made a module that others have too"));
  const auto hooked = std::make_shared<Wider>(kNativeWidth + 1);
  hooked->layer->weight.register_hook([](const at::Tensor& gradient) { return gradient; });
  CHECK_THAT(refusal_of("wider", hooked),
             ContainsSubstring("the parameter layer.weight of the native stage \"wider\""));
  const std::shared_ptr<Wider> none;
  CHECK_THAT(refusal([&] { (void)native_stage("wider", none, rows(0)); }),
             ContainsSubstring("\"wider\""));
  CHECK_THAT(
      refusal([] { register_native_stage("loop", [] { return std::make_shared<Loop>(); }); }),
      ContainsSubstring("a native stage \"loop\" is registered already"));
}

TEST_CASE("a native stage that a worker's program does not know is named with it",
          "[integration][native-stage][processes]") {
  const Program program = loop_program();
  const Cluster cluster = Cluster::spawn(3);  // the generic worker
  const Error why = thrown_error(
      [&] { Trainer trainer(cluster, program, one_f_one_b(3, kMicrobatches), AdamW{}); });
  CHECK_THAT(why.what(),
             ContainsSubstring("no native stage \"loop\" is registered") &&
                 ContainsSubstring("/stagecraft on ") && ContainsSubstring("has none"));
}

}  // namespace native_stage_cases
}  // namespace
}  // namespace stagecraft::tests
