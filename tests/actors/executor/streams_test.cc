/// Tests plans whose streams drift apart: the order given by streams and waits is all that a step
/// needs.
#include <fmt/format.h>
#include <torch/torch.h>

#include "stagecraft/actors/executor/step/foreign_error.h"
#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/module/split_batch.h"
#include "stagecraft/scheduler/builders/interleaved.h"
#include "stagecraft/scheduler/builders/kfkb.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/tests/actors/executor/drifting_rank.h"
#include "stagecraft/tests/actors/executor/pipeline.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/modules.h"

namespace stagecraft {
namespace {

using testing::DriftingRank;
using testing::Pipeline;

const Optimizer kOptimizer = Sgd{.lr = 0.1, .momentum = 0.9};

/// Runs the ranks of a plan, drifting, and gives the result of their training.
class Drifting {
 public:
  Drifting(const Program& program, const Schedule& schedule, unsigned seed)
      : program_(resize(program, schedule.stage_graph().microbatch_sizes())),
        plan_(std::make_shared<const Plan>(
            lower_schedule(program_, schedule, Layout::of(schedule), true))),
        network_(static_cast<int>(plan_->ranks.size())) {
    for (const RankPlan& rank : plan_->ranks) {
      ranks_.push_back(std::make_unique<DriftingRank>(program_,
                                                      plan_,
                                                      rank.rank,
                                                      kOptimizer,
                                                      network_.endpoint(rank.rank),
                                                      seed + static_cast<unsigned>(ranks_.size())));
    }
  }

  void step(const Batch& inputs, const Batch& labels, std::int64_t number) {
    const CompiledProgram& compiled = program_.compiled();
    const auto x = split_batch(inputs, compiled.inputs, compiled.microbatches, "input");
    const auto y = split_batch(labels, compiled.labels, compiled.microbatches, "label");
    const StepOrder order{.step = Step(number),
                          .submission = Submission(number),
                          .learning_rate = base_learning_rate(kOptimizer)};
    for (const Feed& feed : plan_->feeds) {
      const auto& parts = feed.label ? y : x;
      network_.endpoint(kDriver)->send(
          feed.to,
          {.submission = order.submission, .edge = feed.edge, .microbatch = feed.microbatch},
          parts[feed.microbatch.index()][static_cast<std::size_t>(feed.position)]);
    }
    std::vector<std::thread> threads;
    std::vector<std::exception_ptr> failures(ranks_.size());
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      threads.emplace_back([&, r] {
        try {
          ranks_[r]->run(order);
        } catch (...) {
          failures[r] = std::current_exception();
          const Error error = foreign_error(failures[r]);
          for (std::size_t other = 0; other < ranks_.size(); ++other) {
            network_.endpoint(Rank(other))->close(error);
          }
        }
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    for (const std::exception_ptr& failure : failures) {
      if (failure) {
        std::rethrow_exception(failure);
      }
    }
  }

  [[nodiscard]] std::vector<StateTensor> state() const {
    std::vector<StateTensor> all;
    for (const auto& rank : ranks_) {
      for (const StageRuntime& stage : rank->stages()) {
        stage.append_state(all);
      }
    }
    return all;
  }

  [[nodiscard]] std::vector<double> losses() const {
    std::map<Microbatch, double> by_microbatch;
    for (const auto& rank : ranks_) {
      by_microbatch.insert(rank->losses().begin(), rank->losses().end());
    }
    std::vector<double> losses;
    for (const auto& [microbatch, loss] : by_microbatch) {
      losses.push_back(loss);
    }
    return losses;
  }

  [[nodiscard]] int overtakings() const {
    int sum = 0;
    for (const auto& rank : ranks_) {
      sum += rank->overtakings();
    }
    return sum;
  }

 private:
  Program program_;
  std::shared_ptr<const Plan> plan_;
  InprocNetwork network_;
  std::vector<std::unique_ptr<DriftingRank>> ranks_;
};

struct Example {
  Program program;
  Batch inputs, labels;
};

/// Compares two steps in order with two steps that drift apart; they have the same bits, on every
/// copy of a stage. Returns how often instructions overtook others.
int check_drifting(const Schedule& schedule, const Example& example) {
  const auto& [program, inputs, labels] = example;
  Pipeline pipeline(program, schedule, {.optimizer = kOptimizer});
  std::vector<std::vector<double>> losses;
  for (int step = 0; step < 2; ++step) {
    losses.push_back(pipeline.step(inputs, labels).losses);
  }
  int overtakings = 0;
  for (const unsigned seed : {1U, 77U}) {
    Drifting drifting(program, schedule, seed);
    for (int step = 0; step < 2; ++step) {
      drifting.step(inputs, labels, step);
      CHECK(drifting.losses() == losses[static_cast<std::size_t>(step)]);
    }
    CHECK((testing::differing(pipeline.state(), drifting.state()) == std::vector<std::string>{}));
    overtakings += drifting.overtakings();
  }
  return overtakings;
}

/// Returns a chain of linear layers, one to a stage of the schedule.
Example chain_for(const Schedule& schedule, int microbatches, int samples) {
  torch::manual_seed(3);
  const auto module = std::make_shared<testing::Chain>(Layout::of(schedule).model_stages());
  const Batch inputs = {torch::randn({samples, 8})};
  const Batch labels = {torch::randn({samples, 8})};
  return {.program = compile(module,
                             {.inputs = inputs,
                              .labels = labels,
                              .loss = testing::mean_square,
                              .microbatches = microbatches}),
          .inputs = inputs,
          .labels = labels};
}

TEST_CASE("P-2: however far the streams of a plan drift apart, the bits are those of its list",
          "[executor][streams]") {
  int overtakings = 0;
  for (const BuilderInfo& builder : builders()) {
    for (const int microbatches : {4, 8}) {
      BuildRequest request{.devices = microbatches == 4 ? 2 : 4, .microbatches = microbatches};
      if (builder.takes_graph) {
        request.graph = StageGraph::chain(request.devices);
      }
      std::optional<Schedule> schedule;
      try {
        schedule = build_schedule(builder.name, request);
      } catch (const Error& error) {
        REQUIRE(error.code() == Errc::ScheduleParameter);  // a constraint, for example M >= 2P
        continue;
      }
      INFO(builder.name << ", " << request.devices << " devices");
      overtakings += check_drifting(*schedule, chain_for(*schedule, microbatches, 8));
    }
  }
  CHECK(overtakings > 1000);  // they did drift
}

TEST_CASE("P-2: what is regrouped between stages of other sizes may drift apart too",
          "[executor][streams][sizes]") {
  StageGraph graph = StageGraph::chain(3);
  graph.set_microbatch_sizes(GENERATE(std::vector{1, 2, 4}, std::vector{4, 1, 2}));
  const Schedule schedule = kfkb(graph, 8, {1});
  CHECK(check_drifting(schedule, chain_for(schedule, 8, 8)) > 0);
}

// ---- copies of stages ---------------------------------------------------------------------------

/// `place`: "0=0,2 1=1,3". Returns the schedule with rows that several ranks run side by side.
Schedule placed(std::string_view place, const Schedule& rows) {
  return Schedule::parse(fmt::format("@place {}\n{}", place, to_string(rows)));
}

TEST_CASE("P-2: sums over copies drift apart from the tasks around them, and change no bit",
          "[executor][streams][copies]") {
  struct Combination {
    std::string name;
    Schedule schedule;
    int units = 2;  ///< microbatches of the step for each one of the schedule
  };
  // Those of docs/strategies.md.
  const std::vector<Combination> combinations{
      {"pipeline of 2, 2 copies", placed("0=0,2 1=1,3", one_f_one_b(StageGraph::chain(2), 3))},
      {"4 copies of the whole model", Schedule::parse("@place 0=0,1,2,3\n0F0 0B0 0F1 0B1\n"), 4},
      {"interleaved, 2 copies", placed("0=0,2 1=1,3", interleaved(2, 2, 2))},
      {"zero bubble V, 2 copies",
       placed("0=0,2 1=1,3", build_schedule("zb-v", {.devices = 2, .microbatches = 4}))},
      {"DualPipeV, 2 copies",
       placed("0=0,2 1=1,3", build_schedule("dualpipev", {.devices = 2, .microbatches = 4}))},
      {"1 and 3 copies", placed("0=0 1=1,2,3", one_f_one_b(StageGraph::chain(2), 2)), 3},
  };
  int overtakings = 0;
  for (const auto& [name, schedule, units] : combinations) {
    INFO(name);
    const int microbatches = units * schedule.microbatches();
    overtakings += check_drifting(schedule, chain_for(schedule, microbatches, 2 * microbatches));
  }
  CHECK(overtakings > 0);  // they did drift; how far is chance
}

TEST_CASE("P-2: two towers with 4 and 2 copies, and one loss, may drift apart too",
          "[executor][streams][copies]") {
  const Schedule schedule = Schedule::parse(
      "@edges 0-2,1-2\n"
      "@place 0=0,1,2,3 1=4,5 2=6\n"
      "0F0 0F1 .   0B0 .   0B1\n"
      "1F0 1F1 .   1B0 .   1B1\n"
      ".   2F0 2B0 2F1 2B1 .  \n");
  torch::manual_seed(3);
  testing::TwoTowers module;
  const Batch inputs = {torch::randn({16, 6}), torch::randn({16, 5})};
  const Batch labels = {torch::randn({16, 3})};
  const Program program = compile(
      module,
      {.inputs = inputs, .labels = labels, .loss = testing::mean_square, .microbatches = 8});
  static_cast<void>(
      check_drifting(schedule, {.program = program, .inputs = inputs, .labels = labels}));
}

}  // namespace
}  // namespace stagecraft
