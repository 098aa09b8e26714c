/// Tests plans whose streams drift apart: the order given by streams and waits is all that a step
/// needs.
#include <torch/torch.h>

#include "stagecraft/actors/executor/step/foreign_error.h"
#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/module/split_batch.h"
#include "stagecraft/scheduler/builders/kfkb.h"
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

/// Compares two steps in order with two steps that drift apart; they have the same bits. Returns
/// how often instructions overtook others.
int check_drifting(const Schedule& schedule, int microbatches) {
  torch::manual_seed(3);
  testing::Chain module(Layout::of(schedule).model_stages());
  const Batch inputs = {torch::randn({8, 8})};
  const Batch labels = {torch::randn({8, 8})};
  const Program program = compile(module,
                                  {.inputs = inputs,
                                   .labels = labels,
                                   .loss = testing::mean_square,
                                   .microbatches = microbatches});
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
      overtakings += check_drifting(*schedule, microbatches);
    }
  }
  CHECK(overtakings > 1000);  // they did drift
}

TEST_CASE("P-2: what is regrouped between stages of other sizes may drift apart too",
          "[executor][streams][sizes]") {
  StageGraph graph = StageGraph::chain(3);
  graph.set_microbatch_sizes(GENERATE(std::vector{1, 2, 4}, std::vector{4, 1, 2}));
  CHECK(check_drifting(kfkb(graph, 8, {1}), 8) > 0);
}

}  // namespace
}  // namespace stagecraft
