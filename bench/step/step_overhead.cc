/// What does the runtime itself cost? This program compares stages that do nothing with the same
/// hand-offs between plain threads.
///
/// The comparison runs the very plan of the trainer on one thread per rank: every Send sets a flag
/// under a mutex and notifies, every Recv waits for it on a condition variable, the vote is such a
/// hand-off to every other rank, and the start and end of a step are one each per rank. It runs
/// twice: bare, and with LibTorch's work in the stages (each forward's and backward's operators,
/// accumulation, norms, the optimizer), which a trainer does too even if a stage computes nothing.
/// The rest in the second ratio is the runtime's own cost.
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <tuple>

#include <fmt/format.h>
#include <torch/torch.h>

#include "stagecraft/actors/executor/stage/backward.h"
#include "stagecraft/actors/executor/stage/stage_runtime.h"
#include "stagecraft/base/median.h"
#include "stagecraft/bench/cluster/idle_stages.h"
#include "stagecraft/bench/hardware.h"
#include "stagecraft/compiler/libtorch/thread_count.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/stagecraft.h"

namespace stagecraft::bench::step_overhead {
namespace {

constexpr int kMicrobatches = 8;
constexpr int kSteps = 300;
constexpr int kRounds = 5;

/// Mailbox holds named flags. Setting one wakes its rank.
class Mailbox {
 public:
  using Key = std::
      tuple<int, int, int>;  // step, edge (or a negative number for control), microbatch or sender
  void set(const Key& key) {
    {
      const std::scoped_lock lock(mutex_);
      flags_.insert(key);
    }
    ready_.notify_one();
  }
  void wait(const Key& key) {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [&] { return flags_.contains(key); });
    flags_.erase(key);
  }

 private:
  std::mutex mutex_;
  std::condition_variable ready_;
  std::set<Key> flags_;
};

constexpr int kGo = -1, kDone = -2, kVote = -3;

/// Operators does LibTorch's work of a rank, on its own tensors.
class Operators {
 public:
  Operators(const CompiledProgram& program, const RankList& list) {
    for (const StageId id : list.stages) {
      stages_.emplace(id, StageRuntime(program.partition.stages[id.index()], kOptimizer));
      stages_.at(id).load(initial_state(program.graph));
    }
  }

  void begin_step() {
    for (auto& [id, stage] : stages_) {
      stage.buckets.begin_step();
    }
  }

  void run(const Instruction& i) {
    switch (i.op) {
      case Op::Run:
        i.task.kind == CellKind::Forward ? forward(i.task) : backward(i.task);
        break;
      case Op::Accumulate:
        stages_.at(i.task.stage).buckets.accumulate(gradients_[i.task.stage]);
        break;
      case Op::Vote:
        for (auto& [id, stage] : stages_) {
          (void)stage.buckets.squared_norms(kMicrobatches);
        }
        break;
      case Op::Update:
        stages_.at(i.task.stage).buckets.update(0.0, {.weight = kMicrobatches}, {1});
        break;
      default:
        break;
    }
  }

 private:
  static constexpr Sgd kOptimizer{.lr = 0.0};

  void forward(const Task& task) {
    const torch::AutoGradMode grad(true);
    StageRuntime& stage = stages_.at(task.stage);
    Saved saved;
    std::vector<torch::Tensor> inputs;
    for (const StageInput& input : stage.program->inputs) {
      inputs.push_back(one_.detach());
      if (input.owes_gradient) {
        saved.leaves.push_back(inputs.back().requires_grad_());
      }
    }
    ChunkResult result = stage.chunks.front().interpreter.run(inputs, stage.state, {});
    saved.outputs = std::move(result.outputs);
    saved.loss = std::move(result.loss);
    saved_[task.stage][task.microbatch] = std::move(saved);
  }

  void backward(const Task& task) {
    Saved& saved = saved_[task.stage][task.microbatch];
    const std::vector<torch::Tensor> from_next(saved.outputs.size(), one_);
    gradients_[task.stage] =
        stagecraft::backward(saved, from_next, stages_.at(task.stage).buckets.gradient_edges())
            .parameters;
    saved = {};
  }

  const torch::Tensor one_ = torch::ones({1, 1});
  std::map<StageId, StageRuntime> stages_;
  std::map<StageId, std::map<Microbatch, Saved>> saved_;
  std::map<StageId, std::vector<torch::Tensor>> gradients_;
};

/// `operators` is null for bare hand-offs.
void run_rank(const Plan& plan,
              const RankPlan& rank,
              std::vector<Mailbox>& ranks,
              Mailbox& driver,
              int steps,
              Operators* operators) {
  const int self = rank.rank.value;
  Mailbox& mine = ranks[rank.rank.index()];
  for (int step = 0; step < steps; ++step) {
    mine.wait({step, kGo, 0});
    if (operators != nullptr) {
      operators->begin_step();
    }
    for (const Instruction& i : plan.list_of(rank.rank).instructions) {
      const Mailbox::Key key{step, i.edge.value, i.task.microbatch.value};
      if (operators != nullptr) {
        operators->run(i);
      }
      if (i.op == Op::Recv) {
        mine.wait(key);
      } else if (i.op == Op::Send) {
        ranks[rank.peers[i.peer.index()].index()].set(key);
      } else if (i.op == Op::Vote) {
        for (std::size_t other = 0; other < ranks.size(); ++other) {
          if (static_cast<int>(other) != self) {
            ranks[other].set({step, kVote, self});
          }
        }
        for (std::size_t other = 0; other < ranks.size(); ++other) {
          if (static_cast<int>(other) != self) {
            mine.wait({step, kVote, static_cast<int>(other)});
          }
        }
      }
    }
    driver.set({step, kDone, self});
  }
}

/// Returns the microseconds per step of the plain threads.
double plain_threads(const Program& program, const Plan& plan, int steps, bool with_operators) {
  std::vector<Mailbox> ranks(plan.ranks.size());
  Mailbox driver;
  std::vector<std::thread> threads;
  for (const RankPlan& rank : plan.ranks) {
    threads.emplace_back([&, steps] {
      set_own_thread_count(1);
      std::optional<Operators> operators;
      if (with_operators) {
        operators.emplace(program.compiled(), plan.list_of(rank.rank));
      }
      run_rank(plan, rank, ranks, driver, steps, operators ? &*operators : nullptr);
    });
  }
  const auto start = std::chrono::steady_clock::now();
  for (int step = 0; step < steps; ++step) {
    for (const Feed& feed : plan.feeds) {
      ranks[feed.to.index()].set({step, feed.edge.value, feed.microbatch.value});
    }
    for (Mailbox& rank : ranks) {
      rank.set({step, kGo, 0});
    }
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      driver.wait({step, kDone, static_cast<int>(r)});
    }
  }
  const std::chrono::duration<double, std::micro> elapsed =
      std::chrono::steady_clock::now() - start;
  for (std::thread& t : threads) {
    t.join();
  }
  return elapsed.count() / steps;
}

double trainer_steps(Trainer& trainer, const torch::Tensor& x, int steps) {
  const auto start = std::chrono::steady_clock::now();
  StepFuture last;
  for (int step = 0; step < steps; ++step) {
    last = trainer.step({x}, {x});
  }
  (void)last.get();
  const std::chrono::duration<double, std::micro> elapsed =
      std::chrono::steady_clock::now() - start;
  return elapsed.count() / steps;
}

void measure(int ranks) {
  const auto x = torch::ones({kMicrobatches, 1});
  const auto program = compile_idle_stages(ranks, kMicrobatches);
  auto cluster = Cluster::local(ranks);
  Trainer trainer(
      cluster, program, one_f_one_b(program.stage_graph(), kMicrobatches), Sgd{.lr = 0.0});
  std::vector<double> ours, bare, working, to_bare, to_working;
  (void)trainer_steps(trainer, x, kSteps / 3);
  for (int round = 0; round < kRounds; ++round) {
    ours.push_back(trainer_steps(trainer, x, kSteps));
    bare.push_back(plain_threads(program, trainer.plan(), kSteps, false));
    working.push_back(plain_threads(program, trainer.plan(), kSteps, true));
    to_bare.push_back(ours.back() / bare.back());
    to_working.push_back(ours.back() / working.back());
  }
  const double cells = 2.0 * ranks * kMicrobatches;
  fmt::print(
      "{} ranks: step {:.0f} us, {:.1f} us per cell\n", ranks, median(ours), median(ours) / cells);
  const auto compare =
      [&](const char* what, const std::vector<double>& plain, const std::vector<double>& ratios) {
        fmt::print("  {}: {:.0f} us, {:.1f} us per cell; ratio {:.2f}\n",
                   what,
                   median(plain),
                   median(plain) / cells,
                   median(ratios));
      };
  compare("plain hand-offs, bare", bare, to_bare);
  compare("plain hand-offs, with the stages' operators", working, to_working);
}

}  // namespace

int run(int /*argc*/, char** /*argv*/) {
  fmt::print(
      "{}\n{} microbatches, 1F1B, stages that do nothing; medians of {} rounds of {} steps\n",
      hardware(),
      kMicrobatches,
      kRounds,
      kSteps);
  measure(2);
  measure(4);
  return 0;
}

}  // namespace stagecraft::bench::step_overhead
