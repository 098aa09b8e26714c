/// Runs a pipeline without actors: each rank's executor on a thread of its own; the test does the
/// driver's part.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <thread>

#include <torch/torch.h>

#include "stagecraft/actors/executor/mirror/packed_state.h"
#include "stagecraft/actors/executor/setup/setup_wire.h"
#include "stagecraft/actors/executor/stage/stage_runtime.h"
#include "stagecraft/actors/executor/stage_executor.h"
#include "stagecraft/actors/reference/reference.h"
#include "stagecraft/compiler/libtorch/memory_order.h"
#include "stagecraft/compiler/libtorch/thread_count.h"
#include "stagecraft/compiler/lower/lower.h"
#include "stagecraft/compiler/module/split_batch.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/shapes/resize.h"
#include "stagecraft/compiler/wire/program_wire.h"
#include "stagecraft/futures/transport/inproc.h"
#include "stagecraft/tests/support/apart_transport.h"
#include "stagecraft/tests/support/usual_device.h"

namespace stagecraft::testing {

struct PipelineOptions {
  Optimizer optimizer = Sgd{.lr = 0.1, .momentum = 0.9};
  std::optional<double> clip;
  std::map<Rank, std::function<void(const Instruction&)>> faults;
  std::optional<std::int64_t> memory_limit;
  bool record_timeline = false;
  bool mirror = false;
  std::string device = usual_device;
  DeviceTransport device_transport = DeviceTransport::Nccl;
  DeviceReduce device_reduce = DeviceReduce::ByRank;
  bool apart = false;  ///< ranks act as if each were in a process of its own
  PlanId plan_id;
  std::shared_ptr<InprocNetwork> network;  ///< its own if none is given
};

/// Returns what a rank in another process would have: the setup as read from the wire, if it can
/// travel.
inline RankSetup received(RankSetup setup) {
  const auto stays = [](const auto& stage) { return !wire::obstacles(*stage).empty(); };
  if (std::ranges::any_of(setup.stages, stays)) {
    return setup;
  }
  const auto fault = std::exchange(setup.options.before_instruction, {});
  EncodedSetup sent = encode(setup);
  for (torch::Tensor& tensor : sent.tensors) {
    tensor = tensor.clone();
  }
  RankSetup got = decode_setup(sent.bytes, sent.tensors);
  got.options.before_instruction = fault;
  return got;
}

/// Is the shape of the program's own forwards, run as an evaluation.
inline constexpr std::int32_t kForwardsOnly = 1;

inline RankShape forwards_only(const Program& program,
                               const std::shared_ptr<const Plan>& forwards,
                               const PlanShare& training) {
  auto stages = std::make_shared<std::vector<StageProgram>>(program.compiled().partition.stages);
  for (StageProgram& stage : *stages) {
    for (StageParameter& parameter : stage.parameters) {
      parameter.trained = false;
    }
  }
  return rank_shape(
      {.program = kForwardsOnly, .number = 0, .random = 0, .stages = stages, .plan = forwards},
      training);
}

class Pipeline {
 public:
  Pipeline(const Program& program, const Schedule& schedule, PipelineOptions options = {})
      : layout_(Layout::of(schedule)),
        program_(resize(program, schedule.stage_graph().microbatch_sizes())),
        plan_(std::make_shared<const Plan>(lower_schedule(program_, schedule, layout_, true))),
        evaluate_(std::make_shared<const Plan>(lower_schedule(program_, schedule, layout_, false))),
        options_(std::move(options)),
        network_(options_.network ? options_.network
                                  : std::make_shared<InprocNetwork>(layout_.ranks())) {
    executors_.resize(static_cast<std::size_t>(layout_.ranks()));
    const Submission request(submitted_++);
    on_all([&](std::size_t r) {
      executors_[r] = make_executor(Rank(r));
      executors_[r]->load(initial_state(program_.compiled().graph));
      if (Mirror* mirror = executors_[r]->mirror()) {
        mirror->restart(request, 0, std::nullopt, executors_[r]->state(), "");
      }
    });
  }

  ~Pipeline() { at_the_end(); }
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  /// Acts as if the rank's worker had died: a new one is there, without weights.
  void replace(Rank rank) {
    on_all([&](std::size_t r) {
      if (Rank(r) == rank) {
        executors_[r] = make_executor(rank);
      }
    });
  }

  /// Goes back to the newest state of which all have copies; returns its number of updates.
  std::int64_t recover() {
    before_use();
    std::vector<MirrorStock> stocks;
    for (const auto& executor : executors_) {
      stocks.push_back(executor->mirror()->stock());
    }
    const RecoveryPoint point = choose_recovery(stocks);
    const Submission request(submitted_++);
    for (std::size_t r = 0; r < executors_.size(); ++r) {
      const Mirror& keeper = *executors_[(r + 1) % executors_.size()]->mirror();
      const at::Tensor copy =
          point.lost[r] ? keeper.kept(point.updates) : executors_[r]->mirror()->own(point.updates);
      unpack(copy, executors_[r]->state());
    }
    for (const auto& executor : executors_) {  // drops copies
      executor->mirror()->restart(request, point.updates, point.kept, executor->state(), "");
    }
    before_use();
    committed_ = point.updates;
    return committed_;
  }

  struct Outcome {
    std::vector<StepReport> reports;
    std::vector<std::vector<InstructionTime>> timelines;  ///< by rank
    std::vector<std::optional<Error>> errors;
    std::vector<double> losses;
  };

  Outcome step(const Batch& inputs, const Batch& labels, bool training = true) {
    const CompiledProgram& compiled = program_.compiled();
    const Plan& plan = training ? *plan_ : *evaluate_;
    const auto x = split_batch(inputs, compiled.inputs, compiled.microbatches, "input");
    const auto y = split_batch(labels, compiled.labels, compiled.microbatches, "label");
    const StepOrder order{.step = Step(committed_),
                          .seed = 5,
                          .submission = Submission(submitted_++),
                          .epoch = epoch_,
                          .learning_rate = base_learning_rate(options_.optimizer),
                          .clip = options_.clip.value_or(kUnclipped),
                          .program = training ? kTraining : kForwardsOnly};
    for (const Feed& feed : plan.feeds) {
      const auto& parts = feed.label ? y : x;
      const torch::Tensor& part =
          parts[feed.microbatch.index()][static_cast<std::size_t>(feed.position)];
      network_->endpoint(kDriver)->send(feed.to,
                                        {.plan = options_.plan_id,
                                         .epoch = epoch_,
                                         .submission = order.submission,
                                         .edge = feed.edge,
                                         .microbatch = feed.microbatch},
                                        to_memory_order(part, memory_order_of(part)));
    }
    Outcome outcome;
    outcome.reports.resize(executors_.size());
    outcome.timelines.resize(executors_.size());
    outcome.errors.resize(executors_.size());
    on_all([&](std::size_t r) {
      try {
        outcome.reports[r] = executors_[r]->run(order);
        outcome.timelines[r] = executors_[r]->take_timeline();
      } catch (const Error& e) {
        outcome.errors[r] = e;
        abort(e);
      }
    });
    finish(outcome, training);
    return outcome;
  }

  [[nodiscard]] const Layout& layout() const { return layout_; }
  [[nodiscard]] const Plan& plan() const { return *plan_; }
  StageExecutor& executor(int rank) {
    before_use();
    return *executors_[static_cast<std::size_t>(rank)];
  }

  std::map<std::string, torch::Tensor> state() {
    before_use();
    std::map<std::string, torch::Tensor> all;
    for (const auto& executor : executors_) {
      for (const StateTensor& t : executor->state()) {
        all[t.name] =
            t.tensor.to(at::kCPU, t.tensor.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
      }
    }
    return all;
  }

 private:
  std::unique_ptr<StageExecutor> make_executor(Rank rank) {
    Job job{.plan_id = options_.plan_id,
            .program = program_.shared(),
            .train = plan_,
            .optimizer = options_.optimizer,
            .options = {.clip = options_.clip,
                        .device = options_.device,
                        .device_transport = options_.device_transport,
                        .device_reduce = options_.device_reduce,
                        .memory_limit = options_.memory_limit,
                        .record_timeline = options_.record_timeline,
                        .mirror = options_.mirror,
                        .step_deadline = std::chrono::seconds(30)}};
    if (options_.faults.contains(rank)) {
      job.options.before_instruction = [this](Rank self, const Instruction& i) {
        options_.faults.at(self)(i);
      };
    }
    RankSetup setup = received(rank_setup(job, rank));
    const PlanShare training = setup.train;
    std::shared_ptr<Transport> end = network_->endpoint(rank);
    if (options_.apart) {
      end = std::make_shared<tests::ApartTransport>(std::move(end));
    }
    auto executor = std::make_unique<StageExecutor>(std::move(setup), std::move(end));
    executor->add_shape(forwards_only(program_, evaluate_, training));
    return executor;
  }

  template <class F>
  void on_all(F&& body) {
    std::vector<std::thread> threads;
    for (std::size_t r = 0; r < executors_.size(); ++r) {
      threads.emplace_back([&body, r] {
        set_own_thread_count(
            1);  // as the thread that made the executor: equal thread counts give equal bits
        body(r);
      });
    }
    for (std::thread& t : threads) {
      t.join();
    }
  }

  void abort(const Error& why) {
    for (std::size_t r = 0; r < executors_.size(); ++r) {
      network_->endpoint(Rank(r))->advance(options_.plan_id, Epoch(epoch_.value + 1), why);
    }
  }

  void finish(Outcome& outcome, bool training) {
    bool failed = false;
    for (const auto& error : outcome.errors) {
      failed = failed || error.has_value();
    }
    if (failed) {
      epoch_ = Epoch(epoch_.value + 1);
      return;
    }
    committed_ += training ? 1 : 0;
    std::map<Microbatch, double> losses;
    for (std::size_t r = 0; r < executors_.size(); ++r) {
      for (const MicrobatchLoss& loss : outcome.reports[r].losses) {
        losses[loss.microbatch] = loss.value;
      }
    }
    for (const auto& [microbatch, loss] : losses) {
      outcome.losses.push_back(loss);
    }
  }

  Layout layout_;
  Program program_;
  std::shared_ptr<const Plan> plan_, evaluate_;
  PipelineOptions options_;
  std::shared_ptr<InprocNetwork> network_;
  std::vector<std::unique_ptr<StageExecutor>> executors_;
  Epoch epoch_;
  std::int64_t committed_ = 0, submitted_ = 0;
};

/// Returns the bytes that slots and autograd hold when the ranks end a step, over all ranks.
/// Requires: the step was recorded.
inline std::int64_t held_at_end(const Pipeline::Outcome& outcome) {
  std::int64_t held = 0;
  for (const std::vector<InstructionTime>& rank : outcome.timelines) {
    held += rank.back().held;
  }
  return held;
}

/// Returns the names of state tensors whose bits differ.
inline std::vector<std::string> differing(const std::map<std::string, torch::Tensor>& a,
                                          const std::vector<StateTensor>& b) {
  std::vector<std::string> names;
  for (const StateTensor& t : b) {
    const auto found = a.find(t.name);
    if (found == a.end() || !torch::equal(found->second.cpu(), t.tensor.cpu())) {
      names.push_back(t.name);
    }
  }
  return names;
}

}  // namespace stagecraft::testing
