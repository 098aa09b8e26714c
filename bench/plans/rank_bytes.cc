#include "stagecraft/bench/plans/rank_bytes.h"

#include <algorithm>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include "stagecraft/actors/executor/setup/rank_setup.h"
#include "stagecraft/actors/executor/stage/stage_runtime.h"
#include "stagecraft/actors/executor/stage_executor.h"
#include "stagecraft/compiler/libtorch/thread_count.h"
#include "stagecraft/compiler/lower/lower.h"
#include "stagecraft/compiler/module/split_batch.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/shapes/resize.h"
#include "stagecraft/futures/transport/forwarding_transport.h"
#include "stagecraft/futures/transport/inproc.h"
#include "stagecraft/scheduler/model/layout.h"

namespace stagecraft::bench {
namespace {

constexpr int kSteps = 2;  // the first step still allocates the optimizers' state

/// Owner says which rank a block belongs to.
struct Owner {
  Rank rank = kDriver;
  bool waits = false;

  friend auto operator<=>(const Owner&, const Owner&) = default;
};

/// Ledger knows the owner of each block and the bytes of each owner. Its mutex guards all of it.
class Ledger {
 public:
  struct Use {
    std::int64_t live = 0, peak = 0;
    std::optional<Task> during;
  };

  void add(const void* block, std::int64_t bytes, const Owner& owner) {
    const std::scoped_lock lock(mutex_);
    blocks_[block] = {bytes, owner};
    take(owner, bytes);
  }

  void remove(const void* block) {
    const std::scoped_lock lock(mutex_);
    if (const auto found = blocks_.find(block); found != blocks_.end()) {
      uses_[found->second.owner].live -= found->second.bytes;
      blocks_.erase(found);
    }
  }

  void hand_over(const void* block, const Owner& to) {
    const std::scoped_lock lock(mutex_);
    if (const auto found = blocks_.find(block); found != blocks_.end()) {
      uses_[std::exchange(found->second.owner, to)].live -= found->second.bytes;
      take(to, found->second.bytes);
    }
  }

  void is_at(Rank rank, const Task& task) {
    const std::scoped_lock lock(mutex_);
    at_[rank] = task;
  }

  [[nodiscard]] Use use(const Owner& owner) {
    const std::scoped_lock lock(mutex_);
    return uses_[owner];
  }

  void reset_peak(Rank rank) {
    const std::scoped_lock lock(mutex_);
    Use& use = uses_[{rank, false}];
    use.peak = use.live;
  }

 private:
  struct Block {
    std::int64_t bytes = 0;
    Owner owner;
  };

  void take(const Owner& owner, std::int64_t bytes) {
    Use& use = uses_[owner];
    use.live += bytes;
    if (use.live > use.peak) {
      use.peak = use.live;
      if (const auto at = at_.find(owner.rank); at != at_.end()) {
        use.during = at->second;
      }
    }
  }

  std::mutex mutex_;
  std::unordered_map<const void*, Block> blocks_;
  std::map<Owner, Use> uses_;
  std::map<Rank, Task> at_;
};

/// Meter reports to the ledger what one thread allocates and frees. Autograd's engine keeps it set.
class Meter : public c10::MemoryReportingInfoBase {
 public:
  Meter(Ledger& ledger, const Owner& owner) : ledger_(ledger), owner_(owner) {}

  void reportMemoryUsage(
      void* block, std::int64_t size, std::size_t, std::size_t, c10::Device) override {
    if (size > 0) {
      ledger_.add(block, size, owner_);
    } else {
      ledger_.remove(block);
    }
  }
  [[nodiscard]] bool memoryProfilingEnabled() const override { return true; }

 private:
  Ledger& ledger_;
  const Owner owner_;
};

class Metered {
 public:
  Metered(Ledger& ledger, const Owner& owner)
      : guard_(c10::DebugInfoKind::PROFILER_STATE, std::make_shared<Meter>(ledger, owner)) {}

 private:
  c10::DebugInfoGuard guard_;
};

/// Copies holds the copies in progress by receiver. Those of a step have one tag each.
class Copies {
 public:
  void sent(Rank to, const Tag& tag, const void* block) {
    const std::scoped_lock lock(mutex_);
    blocks_[{to, tag.edge, tag.microbatch}] = block;
  }
  [[nodiscard]] const void* taken(Rank by, const Instruction& receive) {
    const std::scoped_lock lock(mutex_);
    return blocks_.extract({by, receive.edge, receive.transferred()}).mapped();
  }

 private:
  std::mutex mutex_;
  std::map<std::tuple<Rank, EdgeId, Microbatch>, const void*> blocks_;
};

/// CopyingTransport keeps RB-2.
class CopyingTransport final : public ForwardingTransport {
 public:
  CopyingTransport(std::shared_ptr<Transport> inner, Ledger& ledger, Copies& copies)
      : ForwardingTransport(std::move(inner)), ledger_(ledger), copies_(copies) {}

  void send(Rank to, const Tag& tag, at::Tensor tensor) override {
    at::Tensor copy;
    {
      const Metered waiting(ledger_, {to, true});
      copy = tensor.clone();
    }
    copies_.sent(to, tag, copy.storage().data());
    ForwardingTransport::send(to, tag, std::move(copy));
  }

 private:
  Ledger& ledger_;
  Copies& copies_;
};

class Counted {
 public:
  Counted(const Program& program, const Schedule& schedule, const Optimizer& optimizer)
      : program_(resize(program, schedule.stage_graph().microbatch_sizes())),
        plan_(std::make_shared<const Plan>(
            lower_schedule(program_, schedule, Layout::of(schedule), true))),
        network_(static_cast<int>(plan_->ranks.size())),
        job_{.plan_id = {},
             .program = program_.shared(),
             .train = plan_,
             .optimizer = optimizer,
             .options = {.before_instruction =
                             [this](Rank rank, const Instruction& next) { before(rank, next); }}},
        received_(plan_->ranks.size()),
        executors_(plan_->ranks.size()) {
    on_all([this](std::size_t r) {
      executors_[r] = std::make_unique<StageExecutor>(rank_setup(job_, Rank(r)), endpoint(Rank(r)));
      executors_[r]->load(initial_state(program_.compiled().graph));
      ledger_.reset_peak(Rank(r));
    });
  }

  void step(const Batch& inputs, const Batch& labels) {
    const Metered metered(ledger_, {kDriver});
    const CompiledProgram& compiled = program_.compiled();
    const auto x = split_batch(inputs, compiled.inputs, compiled.microbatches, "input");
    const auto y = split_batch(labels, compiled.labels, compiled.microbatches, "label");
    const StepOrder order{.step = Step(steps_),
                          .seed = 1,
                          .submission = Submission(steps_),
                          .epoch = {},
                          .learning_rate = base_learning_rate(job_.optimizer)};
    ++steps_;
    for (const Feed& feed : plan_->feeds) {
      const auto& parts = feed.label ? y : x;
      endpoint(kDriver)->send(
          feed.to,
          {.submission = order.submission, .edge = feed.edge, .microbatch = feed.microbatch},
          parts[feed.microbatch.index()][static_cast<std::size_t>(feed.position)]);
    }
    on_all([&](std::size_t r) { (void)executors_[r]->run(order); });
  }

  [[nodiscard]] std::vector<RankBytes> bytes() {
    std::vector<RankBytes> all;
    for (std::size_t r = 0; r < executors_.size(); ++r) {
      const Ledger::Use own = ledger_.use({Rank(r), false});
      all.push_back({.state = own.live,
                     .peak = own.peak,
                     .waiting = ledger_.use({Rank(r), true}).peak,
                     .during = own.during});
    }
    return all;
  }

 private:
  [[nodiscard]] std::shared_ptr<Transport> endpoint(Rank rank) {
    return std::make_shared<CopyingTransport>(network_.endpoint(rank), ledger_, copies_);
  }

  /// Gives the tensor that the previous instruction received to the rank.
  void before(Rank rank, const Instruction& next) {
    const Instruction*& last = received_[rank.index()];
    if (last != nullptr) {
      ledger_.hand_over(copies_.taken(rank, *last), {rank, false});
    }
    last = next.op == Op::Recv ? &next : nullptr;
    ledger_.is_at(rank, next.task);
  }

  /// Runs `body` on a thread for each rank.
  void on_all(const std::function<void(std::size_t)>& body) {
    std::vector<std::thread> threads;
    std::vector<std::exception_ptr> failed(executors_.size());
    for (std::size_t r = 0; r < executors_.size(); ++r) {
      threads.emplace_back([&, r] {
        set_own_thread_count(1);
        const Metered metered(ledger_, {Rank(r)});
        try {
          body(r);
        } catch (...) {
          failed[r] = std::current_exception();
        }
      });
    }
    std::ranges::for_each(threads, &std::thread::join);
    for (const std::exception_ptr& error : failed) {
      if (error) {
        std::rethrow_exception(error);
      }
    }
  }

  Ledger ledger_;
  Copies copies_;
  const Program program_;
  const std::shared_ptr<const Plan> plan_;
  const InprocNetwork network_;
  const Job job_;
  std::vector<const Instruction*> received_;  // by rank: the last instruction if it was a receive
  std::vector<std::unique_ptr<StageExecutor>> executors_;
  std::int64_t steps_ = 0;
};

}  // namespace

std::vector<RankBytes> count_bytes(const Program& program,
                                   const Schedule& schedule,
                                   const Optimizer& optimizer,
                                   const Batch& inputs,
                                   const Batch& labels) {
  Counted counted(program, schedule, optimizer);
  for (int step = 0; step < kSteps; ++step) {
    counted.step(inputs, labels);
  }
  return counted.bytes();
}

}  // namespace stagecraft::bench
