/// DriftingRank runs one rank's list of a plan as a device with real streams might: every stream on
/// a thread of its own, as far ahead of the others as the plan's waits allow, in random order.
///
/// It shares with the executor the computation of a task, but no order of events. Reading a slot
/// before it is full, filling it before it is empty, or emptying it while it is read is an error at
/// once; other effects of a missing wait show in the bits.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <variant>
#include <vector>

#include <ATen/TensorOperators.h>

#include "stagecraft/actors/executor/commit/commit.h"
#include "stagecraft/actors/executor/device/device.h"
#include "stagecraft/actors/executor/device/step_times.h"
#include "stagecraft/actors/executor/run/regrouped.h"
#include "stagecraft/actors/executor/setup/bound_plan.h"
#include "stagecraft/actors/executor/setup/rank_setup.h"
#include "stagecraft/actors/executor/stage/stage_runtime.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/libtorch/thread_count.h"
#include "stagecraft/compiler/program/program.h"
#include "stagecraft/futures/collective/transport_collective.h"
#include "stagecraft/futures/transport/transport.h"

namespace stagecraft::testing {

class DriftingRank {
 public:
  using Tensors = std::vector<at::Tensor>;

  DriftingRank(const Program& program,
               const std::shared_ptr<const Plan>& plan,
               Rank rank,
               const Optimizer& optimizer,
               std::shared_ptr<Transport> transport,
               unsigned seed)
      : setup_(rank_setup({.plan_id = {},
                           .program = program.shared(),
                           .train = plan,
                           .optimizer = optimizer,
                           .options = {.step_deadline = std::chrono::seconds(30)}},
                          rank)),
        stages_(stages_of(setup_, program)),
        bound_(bind_plan(setup_.train, setup_.stages)),
        transport_(std::move(transport)),
        collective_(transport_),
        commit_(setup_, collective_, *Clock::steady(), times_, stages_, nullptr),
        random_(seed) {}
  DriftingRank(const DriftingRank&) = delete;
  DriftingRank& operator=(const DriftingRank&) = delete;

  /// Runs one step; throws the error of any stream.
  void run(const StepOrder& order) {
    order_ = order;
    commit_.begin_step(order, {.epoch = order.epoch, .submission = order.submission});
    losses_.clear();
    done_.assign(bound_.list.size(), false);
    slots_.assign(static_cast<std::size_t>(setup_.train.list->slots), {});
    readers_.assign(slots_.size(), 0);
    received_.assign(bound_.list.size(), {});
    completed_ = 0;
    failure_ = nullptr;
    for (const std::size_t position : bound_.receives) {
      received_[position] = transport_->receive(bound_.list[position].peer, tag_of(position));
      received_[position].on_ready([this] { changed(); });
    }
    std::vector<std::thread> streams;
    const std::size_t count = setup_.train.list->streams.size();
    running_ = static_cast<int>(count);
    for (std::size_t s = 0; s < count; ++s) {
      streams.emplace_back([this, s] {
        set_own_thread_count(1);
        run_stream(StreamId(s));
      });
    }
    for (std::thread& stream : streams) {
      stream.join();
    }
    if (failure_) {
      std::rethrow_exception(failure_);
    }
    for (const Content& content : slots_) {
      if (!std::holds_alternative<std::monostate>(content)) {
        throw Error(Errc::PlanInvalid, "a slot is full behind the step");
      }
    }
  }

  [[nodiscard]] const std::vector<StageRuntime>& stages() const { return stages_; }
  /// Returns losses by microbatch; empty if other ranks compute the loss.
  [[nodiscard]] const std::map<Microbatch, double>& losses() const { return losses_; }
  /// Returns how often an instruction was issued before one that stands before it in the list.
  [[nodiscard]] int overtakings() const { return overtakings_; }

 private:
  using Content = std::variant<std::monostate, at::Tensor, SavedStage, Tensors>;

  static std::vector<StageRuntime> stages_of(const RankSetup& setup, const Program& program) {
    std::vector<StageRuntime> stages;
    for (std::size_t s = 0; s < setup.stages.size(); ++s) {
      stages.emplace_back(*setup.stages[s], setup.optimizer, BucketOptions(), setup.buckets_of(s));
      stages.back().load(initial_state(program.compiled().graph));
    }
    return stages;
  }
  [[nodiscard]] const Instruction& instruction(std::size_t position) const {
    return *bound_.list[position].instruction;
  }
  [[nodiscard]] Tag tag_of(std::size_t position) const {
    return {.epoch = order_.epoch,
            .submission = order_.submission,
            .edge = instruction(position).edge,
            .microbatch = bound_.list[position].tagged};
  }

  void changed() {
    const std::scoped_lock lock(mutex_);
    change_.notify_all();
  }

  /// Waits while `ready` is false. When all streams wait, those that merely lag continue.
  template <class Ready>
  void wait(std::unique_lock<std::mutex>& lock, Ready&& ready) {
    ++waiting_;
    if (waiting_ == running_) {
      change_.notify_all();
    }
    if (!change_.wait_for(lock, std::chrono::seconds(60), [&] { return failure_ || ready(); })) {
      failure_ = std::make_exception_ptr(
          Error(Errc::ClusterTimeout,
                "the streams of " + peer_name(setup_.rank()) + " wait for each other"));
      change_.notify_all();
    }
    --waiting_;
  }

  void run_stream(StreamId stream) {
    std::vector<std::size_t> left;
    for (std::size_t i = 0; i < bound_.list.size(); ++i) {
      if (instruction(i).stream == stream) {
        left.push_back(i);
      }
    }
    std::unique_lock lock(mutex_);
    while (!left.empty() && !failure_) {
      const std::int64_t until = completed_ + static_cast<std::int64_t>(random_() % 12);
      wait(lock, [&] { return completed_ >= until || waiting_ == running_; });
      std::vector<std::size_t> enabled;
      wait(lock, [&] {
        enabled = enabled_of(left);
        return !enabled.empty();
      });
      if (failure_) {
        break;
      }
      const std::size_t next = enabled[random_() % enabled.size()];
      std::erase(left, next);
      const auto here = done_.begin() + static_cast<std::ptrdiff_t>(next);
      overtakings_ += std::find(done_.begin(), here, false) == here ? 0 : 1;
      try {
        execute(next, lock);
      } catch (...) {
        failure_ = failure_ ? failure_ : std::current_exception();
      }
      done_[next] = true;
      ++completed_;
      change_.notify_all();
    }
    --running_;
    change_.notify_all();
  }

  /// Returns which of a stream's instructions may run next: the first, or in an overlap group the
  /// first of each task, if everything that it waits for is done.
  [[nodiscard]] std::vector<std::size_t> enabled_of(const std::vector<std::size_t>& left) const {
    std::vector<std::size_t> enabled;
    std::vector<Task> seen;
    for (const std::size_t position : left) {
      const Instruction& i = instruction(position);
      if (i.overlap != instruction(left.front()).overlap) {
        break;
      }
      const bool first_of_task = std::ranges::none_of(seen, [&](const Task& t) {
        const bool one_way = (t.kind == CellKind::Forward) == (i.task.kind == CellKind::Forward);
        return t == i.task || (t.stage == i.task.stage && one_way);  // OG-1
      });
      if (first_of_task && may_begin(position)) {
        enabled.push_back(position);
      }
      seen.push_back(i.task);
      if (i.overlap < 0) {
        break;
      }
    }
    return enabled;
  }

  [[nodiscard]] bool may_begin(std::size_t position) const {
    // A bound list has no waits that concern a Free alone: a device does not need them, but the
    // slots here do.
    const bool waits_done =
        std::ranges::all_of(instruction(position).waits, [this](const InstructionId& earlier) {
          const auto found = std::ranges::find(
              bound_.list, earlier, [](const BoundInstruction& b) { return b.instruction->id; });
          return done_[static_cast<std::size_t>(found - bound_.list.begin())];
        });
    return waits_done && (!received_[position].valid() || received_[position].ready());
  }

  /// Marks slots that are read without the lock, from its making to its end.
  class Reading {
   public:
    Reading(DriftingRank& rank, std::unique_lock<std::mutex>& lock, std::vector<SlotId> slots)
        : rank_(rank), lock_(lock), slots_(std::move(slots)) {
      for (const SlotId slot : slots_) {
        ++rank_.readers_[slot.index()];
      }
      lock_.unlock();
    }
    ~Reading() {
      lock_.lock();
      for (const SlotId slot : slots_) {
        --rank_.readers_[slot.index()];
      }
    }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;

   private:
    DriftingRank& rank_;
    std::unique_lock<std::mutex>& lock_;
    std::vector<SlotId> slots_;
  };

  void put(SlotId slot, Content content) {
    if (!std::holds_alternative<std::monostate>(slots_[slot.index()])) {
      throw Error(Errc::PlanInvalid, "slot " + to_string(slot) + " is filled before it is empty");
    }
    slots_[slot.index()] = std::move(content);
  }
  template <class T>
  T& get(SlotId slot) {
    T* found = std::get_if<T>(&slots_[slot.index()]);
    if (found == nullptr) {
      throw Error(Errc::PlanInvalid, "slot " + to_string(slot) + " is read before it is full");
    }
    return *found;
  }

  /// Runs with the lock, except while it computes or waits for other ranks.
  void execute(std::size_t position, std::unique_lock<std::mutex>& lock) {
    const BoundInstruction& bound = bound_.list[position];
    switch (bound.instruction->op) {
      case Op::Run:
        if (!bound.instruction->does_nothing()) {
          run_task(bound, lock);
        }
        break;
      case Op::Send: {
        const at::Tensor tensor = get<at::Tensor>(bound.slot);
        const Reading reading(*this, lock, {bound.slot});
        // Runs unlocked: a peer's stream may wake and take its own lock.
        transport_->send(bound.peer, tag_of(position), tensor);
        break;
      }
      case Op::Recv:
        put(bound.slot, received_[position].get());
        break;
      case Op::Free:
        if (std::holds_alternative<std::monostate>(slots_[bound.slot.index()]) ||
            readers_[bound.slot.index()] > 0) {
          throw Error(Errc::PlanInvalid,
                      "slot " + to_string(bound.slot) + " is freed while it is read, or empty");
        }
        slots_[bound.slot.index()] = {};
        break;
      case Op::Accumulate:
        stages_[bound.stage].buckets.accumulate(
            stages_[bound.stage].completed_in(bound.instruction->chunks), get<Tensors>(bound.slot));
        break;
      case Op::Regroup: {
        Tensors parts;
        for (const SlotId slot : bound.inputs) {
          parts.push_back(get<at::Tensor>(slot));
        }
        put(bound.slot, regrouped(parts, bound.instruction->rows));
        break;
      }
      case Op::Start:
        commit_.start(*bound.instruction);
        break;
      case Op::Release:
        commit_.release(*bound.instruction);
        break;
      case Op::Finish:
      case Op::Vote:
      case Op::Update:
        ++waiting_;  // it waits for other ranks, which may wait for a lagging stream here
        change_.notify_all();
        {
          const Reading nothing(*this, lock, {});
          finish(bound);
        }
        --waiting_;
        break;
    }
  }

  void finish(const BoundInstruction& bound) {
    if (bound.instruction->op == Op::Finish) {
      commit_.finish(*bound.instruction);
    } else if (bound.instruction->op == Op::Vote) {
      commit_.cast_vote({});
    } else {
      commit_.update(stages_[bound.stage], bound.bucket);
    }
  }

  void run_task(const BoundInstruction& bound, std::unique_lock<std::mutex>& lock) {
    StageRuntime& stage = stages_[bound.stage];
    const Task& task = bound.instruction->task;
    if (task.kind == CellKind::Forward) {
      run_forward(bound, stage, lock);
      return;
    }
    Tensors gradients(bound.output_gradients.size());
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      for (const SlotId slot : bound.output_gradients[i]) {
        const at::Tensor& gradient = get<at::Tensor>(slot);
        gradients[i] = gradients[i].defined() ? gradients[i] + gradient : gradient;
      }
    }
    SavedStage& saved = get<SavedStage>(bound.saved);
    StageGradients made;
    {
      const Reading reading(*this, lock, {bound.saved});
      made = stage.backward(task.kind, bound.instruction->chunks, saved, gradients);
    }
    for (std::size_t i = 0; i < made.inputs.size(); ++i) {
      put(bound.input_gradients[i], made.inputs[i]);
    }
    if (bound.parameter_gradients.value >= 0) {
      put(bound.parameter_gradients, std::move(made.parameters));
    }
  }

  void run_forward(const BoundInstruction& bound,
                   const StageRuntime& stage,
                   std::unique_lock<std::mutex>& lock) {
    Tensors inputs;
    std::vector<SlotId> read;
    for (const SlotId slot : bound.inputs) {
      inputs.push_back(slot.value < 0 ? at::Tensor() : get<at::Tensor>(slot));
      if (slot.value >= 0) {
        read.push_back(slot);
      }
    }
    SavedStage fresh;
    SavedStage& saved = bound.begins ? fresh : get<SavedStage>(bound.saved);
    StageForward made;
    {
      const Reading reading(*this, lock, read);
      made = stage.forward(
          bound.instruction->chunks,
          inputs,
          bound.keeps_graphs,
          {.seed = 5, .step = order_.step.value, .microbatch = bound.microbatch.value},
          saved);
    }
    for (std::size_t i = 0; i < made.outputs.size(); ++i) {
      if (bound.outputs[i].value >= 0) {
        put(bound.outputs[i], made.outputs[i]);
      }
    }
    if (made.loss.defined()) {
      losses_[bound.microbatch] = made.loss.item<double>();
    }
    if (bound.begins && bound.saved.value >= 0) {
      put(bound.saved, std::move(fresh));
    }
  }

  const RankSetup setup_;
  std::vector<StageRuntime> stages_;
  const BoundPlan bound_;
  const std::shared_ptr<Transport> transport_;
  TransportCollective collective_;
  const std::unique_ptr<Device> device_ = cpu_device();
  StepTimes times_{*device_, setup_.train.list->instructions.size()};
  Commit commit_;
  StepOrder order_;

  std::mutex mutex_;
  std::condition_variable change_;
  std::mt19937 random_;
  std::vector<bool> done_;  // by position
  std::vector<Content> slots_;
  std::vector<int> readers_;                  // by slot: streams that read outside the lock
  std::vector<Future<at::Tensor>> received_;  // by position
  std::map<Microbatch, double> losses_;
  std::int64_t completed_ = 0;
  int running_ = 0;
  int waiting_ = 0;
  int overtakings_ = 0;
  std::exception_ptr failure_;
};

}  // namespace stagecraft::testing
