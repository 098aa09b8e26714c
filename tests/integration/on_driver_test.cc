/// Tests code that runs on the driver between two parts of a stage: training equals one process and
/// plain LibTorch, in threads and in processes, by every kind of schedule; its errors say what to
/// do.
#include "stagecraft/compiler/native/on_driver.h"

#include <csignal>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/scheduler/strategy/strategy_of.h"
#include "stagecraft/tests/integration/models.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/error_of.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft::tests {
namespace {
// Names of other tests in the same file of the build would meet these.
namespace on_driver_cases {

using Catch::Matchers::ContainsSubstring;

constexpr std::int64_t kWidth = 6;
constexpr int kRows = 12;

/// Returns for each row the column of its largest value, which no operator may decide in a graph.
at::Tensor best_column(const at::Tensor& scores) {
  const at::Tensor best = torch::zeros({scores.size(0)}, at::kLong);
  for (std::int64_t row = 0; row < scores.size(0); ++row) {
    for (std::int64_t column = 1; column < scores.size(1); ++column) {
      if (scores[row][column].item<float>() >
          scores[row][best[row].item<std::int64_t>()].item<float>()) {
        best[row] = column;
      }
    }
  }
  return best;
}

/// Matched asks the driver in its second stage, and what follows uses memory from before.
struct Matched : torch::nn::Module {
  torch::nn::Linear in{register_module("in", torch::nn::Linear(kWidth, kWidth))};
  torch::nn::Linear out{register_module("out", torch::nn::Linear(kWidth, kWidth))};
  torch::nn::Linear last{register_module("last", torch::nn::Linear(kWidth, 1))};
  std::thread::id* ran_on = nullptr;

  at::Tensor forward(at::Tensor x) {
    const auto h = stage("in", [&] { return torch::tanh(in(x)); });
    const auto chosen = stage("out", [&] {
      const at::Tensor scores = out(h);
      const at::Tensor columns = on_driver(
          "matcher",
          [this](const at::Tensor& s) {
            if (ran_on != nullptr) {
              *ran_on = std::this_thread::get_id();
            }
            return best_column(s);
          },
          scores.detach());
      at::Tensor mask = torch::zeros_like(scores);
      mask.scatter_(1, columns.unsqueeze(1), 1.0);
      return scores * mask + scores.mean();
    });
    return stage("last", last, chosen);
  }
};

/// Smoothed computes a differentiable step on the driver, and its loss reads it twice.
struct Smoothed : torch::nn::Module {
  torch::nn::Linear in{register_module("in", torch::nn::Linear(kWidth, kWidth))};
  torch::nn::Linear out{register_module("out", torch::nn::Linear(kWidth, 1))};

  at::Tensor forward(at::Tensor x) {
    const auto h = stage("in", [&] { return torch::tanh(in(x)); });
    return stage("out", [&] {
      const auto [soft, sharp] = on_driver(
          "smooth",
          [](const at::Tensor& t) {
            at::Tensor s = t;
            while (s.abs().max().item<float>() > 0.3) {
              s = s * 0.5;
            }
            return std::tuple(s, t.sin());
          },
          h);
      return out(soft + sharp * h);
    });
  }
};

at::Tensor rows(int step) {
  const auto count = at::arange(kRows * kWidth, at::kFloat);
  return at::sin(count * (step + 1)).reshape({kRows, kWidth});
}
at::Tensor labels(int step) {
  return rows(step).sum(1, /*keepdim=*/true);
}

template <class Net>
Program made(std::thread::id* ran_on = nullptr) {
  torch::manual_seed(4);
  const auto net = std::make_shared<Net>();
  if constexpr (std::is_same_v<Net, Matched>) {
    net->ran_on = ran_on;
  }
  return compile(net,
                 {.inputs = {rows(0)},
                  .labels = {labels(0)},
                  .loss = torch::mse_loss,
                  .microbatches = kMicrobatches});
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

TEST_CASE("code on the driver divides its stage", "[integration][on-driver]") {
  const Program program = made<Matched>();
  CHECK(program.stage_graph().size() == 3);
  CHECK(program.stage_graph().is_chain());
  CHECK(program.compiled().assignment.names ==
        std::vector<std::string>{"in", "out", "matcher", "out.2", "last"});
  CHECK_THAT(program.explain(),
             ContainsSubstring("\"matcher\": 1 operator") && ContainsSubstring(", on the driver") &&
                 ContainsSubstring("in this process only: driver code matcher"));
  const CheckResult checked = check(program, one_f_one_b(3, kMicrobatches));
  REQUIRE(checked.ok());
  CHECK(checked.schedule->rows().size() == 4);
  CHECK(checked.layout->ranks() == 4);
}

TEST_CASE("a model with code on the driver trains as in one process", "[integration][on-driver]") {
  const auto* name = GENERATE("gpipe", "1f1b", "zb-h1", "dag-1f1b");
  CAPTURE(name);
  const Program program = made<Matched>();
  check_equal_to_one_process(
      Cluster::local(3), program, schedule_for(name, program.stage_graph(), kMicrobatches));
}

TEST_CASE("gradients flow through code on the driver", "[integration][on-driver]") {
  const auto* name = GENERATE("gpipe", "1f1b", "zb-h1");
  CAPTURE(name);
  const Program program = made<Smoothed>();
  check_equal_to_one_process(
      Cluster::local(2), program, schedule_for(name, program.stage_graph(), kMicrobatches));
}

TEST_CASE("code on the driver stays in the driver's process",
          "[integration][on-driver][processes]") {
  std::thread::id ran_on;
  const Program program = made<Matched>(&ran_on);
  const Cluster cluster = Cluster::spawn(3);
  check_equal_to_one_process(
      cluster, program, schedule_for("1f1b", program.stage_graph(), kMicrobatches));
  CHECK(ran_on != std::this_thread::get_id());
}

TEST_CASE("results with code on the driver are those of plain LibTorch",
          "[integration][on-driver]") {
  torch::manual_seed(4);
  Smoothed net;
  const Program program = compile(net,
                                  {.inputs = {rows(0)},
                                   .labels = {labels(0)},
                                   .loss = torch::mse_loss,
                                   .microbatches = kMicrobatches});
  Trainer trainer(program, "1f1b", Sgd{.lr = 0.1}, {.seed = 5});
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
  net.eval();
  at::Tensor predicted;
  trainer.copy_to(net);
  std::vector<at::Tensor> parts;
  for (const at::Tensor& part : rows(3).chunk(kMicrobatches)) {
    parts.push_back(net.forward(part));
  }
  CHECK_THAT((trainer.predict({rows(3)}).front() - at::cat(parts)).abs().max().item<double>(),
             Catch::Matchers::WithinAbs(0, 1e-5));
  CHECK(trainer.evaluate(rows(1), labels(1)) > 0);
}

TEST_CASE("code on the driver serves copies of the pipeline", "[integration][on-driver]") {
  const Program program = made<Matched>();
  Trainer one(program, "1f1b", Sgd{.lr = 1e-2}, {.seed = 5});
  const Schedule twice = in_copies(one_f_one_b(3, kMicrobatches / 2), 2);
  Trainer copies(Cluster::local(6), program, twice, Sgd{.lr = 1e-2}, {.seed = 5});
  const Program four = made<Smoothed>();
  Trainer both_ways(Cluster::local(2),
                    four,
                    schedule_for("chimera", StageGraph::chain(2), kMicrobatches),
                    Sgd{.lr = 1e-2});
  Trainer one_way(four, "1f1b", Sgd{.lr = 1e-2});
  for (int step = 0; step < 3; ++step) {
    const auto mean = [&](Trainer& trainer) {
      return trainer.step(rows(step), labels(step)).get().mean_loss;
    };
    CHECK_THAT(mean(copies), Catch::Matchers::WithinRel(mean(one), 1e-5));
    CHECK_THAT(mean(both_ways), Catch::Matchers::WithinRel(mean(one_way), 1e-5));
  }
}

TEST_CASE("a batch of another shape runs code on the driver", "[integration][on-driver]") {
  const Program program = made<Matched>();
  Trainer trainer(program, "1f1b", AdamW{.lr = 1e-2}, {.seed = 5});
  Reference reference(program, AdamW{.lr = 1e-2}, {.seed = 5, .threads = 1});
  for (const int count : {8, 12, 10}) {
    const at::Tensor x = rows(1).narrow(0, 0, count), y = labels(1).narrow(0, 0, count);
    CHECK(trainer.step(x, y).get().losses == reference.step({x}, {y}).losses);
  }
}

TEST_CASE("a rank beside code on the driver is replaced", "[integration][on-driver][processes]") {
  const Program program = made<Matched>();
  const Cluster cluster = Cluster::spawn(3);
  const TrainerOptions options{.seed = 5, .mirror = true};
  Trainer trainer(cluster, program, one_f_one_b(3, kMicrobatches), AdamW{.lr = 1e-2}, options);
  Trainer unbroken(program, "1f1b", AdamW{.lr = 1e-2}, {.seed = 5});
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

/// Calls has `code` between its layers, in stage "out", or in a stage of its own.
struct Calls : torch::nn::Module {
  using Code = std::function<at::Tensor(const at::Tensor&)>;
  explicit Calls(Code c, std::string n = "code") : code(std::move(c)), name(std::move(n)) {}
  Code code;
  std::string name;
  bool alone = false;
  torch::nn::Linear in{register_module("in", torch::nn::Linear(kWidth, kWidth))};
  torch::nn::Linear out{register_module("out", torch::nn::Linear(kWidth, 1))};

  at::Tensor forward(at::Tensor x) {
    at::Tensor h = stage("in", [&] { return torch::tanh(in(x)); });
    const auto call = [&] { return on_driver(name, code, h); };
    if (alone) {
      h = stage("alone", call);
    }
    return stage("out", [&] { return out(alone ? h : call()); });
  }
};

Program calling(const Calls::Code& code, const std::string& name = "code", bool alone = false) {
  torch::manual_seed(4);
  const auto net = std::make_shared<Calls>(code, name);
  net->alone = alone;
  return compile(net,
                 {.inputs = {rows(0)},
                  .labels = {labels(0)},
                  .loss = torch::mse_loss,
                  .microbatches = kMicrobatches});
}

TEST_CASE("what code on the driver throws arrives with its place, and nothing changes",
          "[integration][on-driver][failure]") {
  const Program program = calling([](const at::Tensor& h) {
    if (!h.isfinite().all().item<bool>()) {
      throw std::runtime_error("no match");
    }
    return h * 2;
  });
  Trainer trainer(program, "1f1b", AdamW{});
  const at::Tensor broken = rows(0);
  broken.select(0, kRows - 1).fill_(NAN);
  const Error error = error_of(trainer.step(broken, labels(0)));
  CHECK_THAT(error.what(), ContainsSubstring("no match"));
  CHECK(error.context().rank == Rank(2));
  CHECK(error.context().microbatch == Microbatch(kMicrobatches - 1));
  CHECK(trainer.step(rows(0), labels(0)).get().step == 1);
}

TEST_CASE("code on the driver that hands on its tensors changes no bit",
          "[integration][on-driver]") {
  const Program printing = calling([](const at::Tensor& h) { return h; });
  const Program plain = calling([](const at::Tensor& h) { return h * 1; });
  Trainer a(printing, "1f1b", AdamW{}), b(plain, "1f1b", AdamW{});
  CHECK(a.step(rows(0), labels(0)).get().losses == b.step(rows(0), labels(0)).get().losses);
  CHECK(same_bits(a.state_dict(), b.state_dict()));
}

TEST_CASE("code on the driver runs once where its stage is recomputed",
          "[integration][on-driver]") {
  torch::manual_seed(4);
  int calls = 0;
  const auto net = std::make_shared<Calls>([&calls](const at::Tensor& h) {
    ++calls;
    return h.sin();
  });
  const Program program = compile(net,
                                  {.inputs = {rows(0)},
                                   .labels = {labels(0)},
                                   .loss = torch::mse_loss,
                                   .microbatches = kMicrobatches,
                                   .recompute = Recompute::stages()});
  Trainer trainer(program, "1f1b", AdamW{}, {.seed = 5});
  calls = 0;
  (void)trainer.step(rows(0), labels(0)).get();
  CHECK(calls == kMicrobatches);
  check_equal_to_one_process(
      Cluster::local(2), program, schedule_for("1f1b", program.stage_graph(), kMicrobatches));
}

/// Both has differentiable code in each of its two stages.
struct Both : torch::nn::Module {
  torch::nn::Linear in{register_module("in", torch::nn::Linear(kWidth, kWidth))};
  torch::nn::Linear out{register_module("out", torch::nn::Linear(kWidth, 1))};
  at::Tensor forward(at::Tensor x) {
    const auto sine = [](const at::Tensor& t) { return t.sin(); };
    const auto h = stage("in", [&] { return on_driver("first", sine, in(x)) * 2; });
    return stage("out", [&] { return on_driver("second", sine, out(h)) * 2; });
  }
};

TEST_CASE("code in every stage runs by split backwards", "[integration][on-driver]") {
  const auto* name = GENERATE("gpipe", "1f1b", "zb-h1", "zb-h2", "zb-auto");
  CAPTURE(name);
  const Program program = made<Both>();
  check_equal_to_one_process(
      Cluster::local(2), program, schedule_for(name, program.stage_graph(), kMicrobatches));
}

TEST_CASE("an evaluation has code on the driver only if the training has",
          "[integration][on-driver][refusals]") {
  torch::manual_seed(4);
  const auto net = std::make_shared<Calls>([](const at::Tensor& h) { return h.sin(); });
  const Program program = compile(torch::nn::Sequential(torch::nn::Linear(kWidth, 1)),
                                  {.inputs = {rows(0)},
                                   .labels = {labels(0)},
                                   .loss = torch::mse_loss,
                                   .microbatches = kMicrobatches});
  Trainer trainer(program, "1f1b", AdamW{});
  std::vector<LabeledBatch> held_out{{{rows(1)}, {labels(1)}}};
  const Metric metric("error", [](const at::Tensor& out, const at::Tensor& label) {
    return on_driver(
        "error",
        [](const at::Tensor& o, const at::Tensor& l) { return (o - l).abs().mean(); },
        out,
        label);
  });
  CHECK_THAT(
      refusal([&] { (void)trainer.evaluate(held_out, {metric}); }, Errc::CompilePartition),
      ContainsSubstring("it has code on the driver (sc::on_driver), and the training has none"));
}

TEST_CASE("a loss on the driver lets any schedule go", "[integration][on-driver]") {
  const auto* name = GENERATE("gpipe", "1f1b", "zb-h1");
  CAPTURE(name);
  torch::manual_seed(4);
  const auto net = std::make_shared<Matched>();
  const auto rest = [](const at::Tensor& out, const at::Tensor& label) {
    const double most = label.abs().max().item<double>();
    return torch::mse_loss(out, label) / (most > 1 ? most : 1);
  };
  const Program program = compile(
      net,
      {.inputs = {rows(0)},
       .labels = {labels(0)},
       .loss = [rest](const at::Tensor& out,
                      const at::Tensor& label) { return on_driver("rest", rest, out, label); },
       .microbatches = kMicrobatches});
  CHECK(program.compiled().assignment.names.back() == "rest");
  CHECK_THAT(refusal([&] {
               (void)compile(net,
                             {.inputs = {rows(0)},
                              .labels = {labels(0)},
                              .loss =
                                  [rest](const at::Tensor& out, const at::Tensor& label) {
                                    return on_driver("rest", rest, out, label);
                                  },
                              .microbatches = kMicrobatches,
                              .keep = {.losses = true}});
             }),
             ContainsSubstring("keep names the losses, which code of the driver makes"));
  check_equal_to_one_process(
      Cluster::local(3), program, schedule_for(name, program.stage_graph(), kMicrobatches));
}

TEST_CASE("beside code on the driver, values stay on the other ranks",
          "[integration][on-driver][kept]") {
  torch::manual_seed(4);
  const Program program = compile(std::make_shared<Matched>(),
                                  {.inputs = {rows(0)},
                                   .labels = {labels(0)},
                                   .loss = torch::mse_loss,
                                   .microbatches = kMicrobatches,
                                   .keep = {.losses = true, .outputs = {0}}});
  const Schedule schedule = one_f_one_b(3, kMicrobatches);
  const int ranks = GENERATE(3, 4);  // as many as the schedule has, and more
  std::size_t on_ranks = 0, on_driver_row = 0;
  TrainerOptions options{.dispatch = Dispatch::PerTask};
  options.column_tensors = true;
  options.on_column = [&](const DispatchedColumn& column) {
    for (const DispatchedTask& task : column.tasks) {
      REQUIRE(task.tensors.size() == task.values.size());
      for (std::size_t v = 0; v < task.tensors.size(); ++v) {
        if (task.rank == Rank(3)) {
          CHECK_THROWS_AS((void)task.tensors[v].get(), Error);
          ++on_driver_row;
        } else {
          CHECK(task.tensors[v].get().sizes() == at::IntArrayRef(task.values[v].sizes));
          ++on_ranks;
        }
      }
    }
  };
  Trainer trainer(Cluster::local(ranks), program, schedule, AdamW{}, options);
  const StepFuture step = trainer.step(rows(0), labels(0));
  const StepResult result = step.get();
  CHECK(step.losses()[1].get().item<double>() == result.losses[1]);
  CHECK(step.outputs()[0].get().size(0) == kRows / kMicrobatches);
  CHECK(on_ranks > 0);
  CHECK(on_driver_row >= kMicrobatches);
  options = {.dispatch = Dispatch::Decided};
  options.decide = [](const auto&, const auto&) { return std::vector<Task>{}; };
  CHECK_THAT(
      refusal([&] { Trainer decided(Cluster::local(ranks), program, schedule, AdamW{}, options); }),
      ContainsSubstring("cannot be decided while it runs yet"));
}

TEST_CASE("driver code that a program cannot have is refused by name",
          "[integration][on-driver][refusals]") {
  const auto refused = [](const Calls::Code& code, Errc how = Errc::UsageArgument) {
    return refusal([&] { (void)calling(code, "broken"); }, how);
  };
  CHECK_THAT(refused([](const at::Tensor& h) { return h.detach() * 2; }, Errc::CompileCapture),
             ContainsSubstring("result 0 of the driver code \"broken\" has no gradient"));
  CHECK_THAT(refused([](const at::Tensor& h) { return torch::dropout(h, 0.5, true); },
                     Errc::CompileCapture),
             ContainsSubstring("random") && ContainsSubstring("on_driver"));
  CHECK_THAT(refused([](const at::Tensor& h) { return h.detach().mul_(2) + h; }),
             ContainsSubstring("driver code broken writes its argument 0 in place"));
  CHECK_THAT(refusal([] { (void)calling([](const at::Tensor& h) { return h * 1; }, ""); }),
             ContainsSubstring("driver code needs a name"));
  CHECK_THAT(refusal([] { (void)calling([](const at::Tensor& h) { return h * 1; }, "a", true); },
                     Errc::CompilePartition),
             ContainsSubstring("the stage \"alone\" has code of the driver alone"));
  CHECK_THAT(refusal(
                 [] {
                   const Schedule order = one_f_one_b(2, kMicrobatches);
                   const Strategy by = strategy_of(order, Layout::of(order));
                   const Program program = calling([](const at::Tensor& h) { return h * 1; });
                   Trainer trainer(Cluster::local(2), program, by, AdamW{});
                 },
                 Errc::ScheduleInvalid),
             ContainsSubstring("a strategy does not place code of the driver"));
}

}  // namespace on_driver_cases
}  // namespace
}  // namespace stagecraft::tests
