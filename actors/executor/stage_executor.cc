#include "stagecraft/actors/executor/stage_executor.h"

#include <algorithm>
#include <cmath>
#include <map>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>

#include "stagecraft/actors/executor/backward.h"
#include "stagecraft/actors/executor/commit.h"
#include "stagecraft/actors/executor/foreign_error.h"
#include "stagecraft/actors/executor/libtorch_gate.h"
#include "stagecraft/actors/executor/overlap_group.h"
#include "stagecraft/actors/executor/replica_sum.h"
#include "stagecraft/actors/executor/stage_runtime.h"
#include "stagecraft/base/check.h"
#include "stagecraft/base/process_end.h"
#include "stagecraft/compiler/thread_count.h"
#include "stagecraft/futures/collective/over_transport.h"
#include "stagecraft/futures/store.h"

namespace stagecraft {
namespace {

using Clock = std::chrono::steady_clock;
using Tensors = std::vector<at::Tensor>;

/// Adds the time of its scope to a counter of seconds.
class Stopwatch {
 public:
  explicit Stopwatch(double& seconds) : seconds_(seconds), start_(Clock::now()) {}
  ~Stopwatch() { seconds_ += std::chrono::duration<double>(Clock::now() - start_).count(); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double& seconds_;
  Clock::time_point start_;
};

/// What one plan needs while it runs: a list of instructions and the slots they use.
struct PlanRuntime {
  const RankPlan* rank = nullptr;
  std::optional<Store> store;
  std::vector<std::optional<Saved>> saved;        // by slot
  std::vector<std::optional<Tensors>> gradients;  // by slot, parameter gradients
  std::vector<Future<at::Tensor>> received;       // by position in the list
  bool ran = false;                               // once to its end

  PlanRuntime(const Plan& plan, Rank self) {
    for (const RankPlan& r : plan.ranks) {
      if (r.rank == self) {
        rank = &r;
      }
    }
    SC_CHECK(rank != nullptr, "the plan has a list for rank " + to_string(self));
    store.emplace(rank->slots);
    saved.resize(static_cast<std::size_t>(rank->slots));
    gradients.resize(static_cast<std::size_t>(rank->slots));
    received.resize(rank->instructions.size());
  }

  void clear() {
    store->clear();
    std::ranges::fill(saved, std::nullopt);
    std::ranges::fill(gradients, std::nullopt);
    std::ranges::fill(received, Future<at::Tensor>());
  }
};

}  // namespace

struct StageExecutor::Impl {
  ExecutorSetup setup;
  std::shared_ptr<Transport> transport;
  std::shared_ptr<Progress> progress;
  TransportCollective collective;
  PlanRuntime train, evaluate;
  Group group;
  std::map<StageId, StageRuntime> stages;

  // Of the running step.
  PlanRuntime* plan = nullptr;
  StepOrder order;
  StepReport report;
  std::map<Microbatch, at::Tensor> losses;
  std::optional<VoteResult> verdict;
  std::int64_t in_flight = 0;
  TimelineRecorder recorder;
  bool recording = false;
  std::vector<InstructionTime> timeline;

  Impl(ExecutorSetup s, std::shared_ptr<Transport> t, std::shared_ptr<Progress> p)
      : setup(std::move(s)),
        transport(std::move(t)),
        progress(std::move(p)),
        collective(transport, {progress, &progress->waits}),
        train(*setup.train, setup.rank),
        evaluate(*setup.evaluate, setup.rank),
        recorder(train.rank->instructions.size()) {
    for (const RankPlan& rank : setup.train->ranks) {
      group.ranks.push_back(rank.rank);
    }
    for (const StageId id : train.rank->stages) {
      stages.emplace(id, StageRuntime(*setup.program, id, setup.optimizer));
    }
  }

  StepReport run(const StepOrder& step) {
    order = step;
    plan = step.training ? &train : &evaluate;
    report = {.rank = setup.rank, .submission = step.submission};
    timeline.clear();
    losses.clear();
    verdict.reset();
    in_flight = 0;
    recording = setup.options.record_timeline && step.training;
    progress->training.store(step.training, std::memory_order_relaxed);
    const std::vector<Tensors> buffers = copy_buffers();
    try {
      {
        const Stopwatch wall(report.times.wall);
        begin();
        for (std::size_t i = 0; i < plan->rank->instructions.size();) {
          i = plan->rank->instructions[i].overlap < 0 ? execute_at(i) : execute_group(i);
        }
      }
      if (!step.training) {
        read_losses();
        restore_buffers(buffers);
      }
      finish();
    } catch (...) {
      const Error error = failure(std::current_exception());
      abandon(buffers);
      throw error;
    }
    return std::move(report);
  }

  /// Receives are posted ahead, in plan order: a peer's tensor is taken in while this rank still
  /// computes.
  void begin() {
    if (recording) {
      recorder.begin_step();
    }
    for (auto& [id, stage] : stages) {
      stage.bucket.begin_step();
    }
    for (std::size_t i = 0; i < plan->rank->instructions.size(); ++i) {
      const Instruction& instruction = plan->rank->instructions[i];
      if (instruction.op == Op::Recv) {
        plan->received[i] = transport->receive(instruction.peer, tag_of(instruction));
        if (recording) {
          recorder.expect(i, plan->received[i]);
        }
      }
    }
  }

  /// Returns the position behind the group.
  std::size_t execute_group(std::size_t begin) {
    OverlapGroup tasks(plan->rank->instructions, begin);
    while (!tasks.done()) {
      const auto [first, end] =
          tasks.take([this](const auto& block) { return has_arrived(block.begin, block.end); });
      for (std::size_t i = first; i < end; ++i) {
        execute_at(i);
      }
    }
    return tasks.end();
  }

  /// Whether all that the instructions receive is here.
  [[nodiscard]] bool has_arrived(std::size_t begin, std::size_t end) const {
    const auto arrived = [](const Future<at::Tensor>& f) { return !f.valid() || f.ready(); };
    return std::all_of(plan->received.begin() + static_cast<std::ptrdiff_t>(begin),
                       plan->received.begin() + static_cast<std::ptrdiff_t>(end),
                       arrived);
  }

  /// Returns the position behind it.
  std::size_t execute_at(std::size_t position) {
    const Instruction& instruction = plan->rank->instructions[position];
    progress->instruction.store(static_cast<std::int32_t>(position), std::memory_order_relaxed);
    const Clock::time_point start = Clock::now();
    progress->since_ns.store(start.time_since_epoch().count(), std::memory_order_relaxed);
    try {
      if (setup.options.before_instruction) {
        const process_end::Elsewhere in_the_users_code;
        setup.options.before_instruction(setup.rank, instruction);
      }
      process_end::gate();
      transport->require_current(setup.plan_id,
                                 report.committed ? kEndlessEpoch : order.epoch);  // keeps X-4
      execute(instruction, position);
    } catch (...) {
      throw with_place(foreign_error(std::current_exception()), instruction);
    }
    if (recording) {
      recorder.record(
          position, start, Clock::now(), bytes_moved(instruction), plan->store->bytes(), in_flight);
    }
    return position + 1;
  }

  [[nodiscard]] std::int64_t bytes_moved(const Instruction& i) const {
    if (i.op != Op::Send && i.op != Op::Recv) {
      return 0;
    }
    const SlotUse& moved = i.op == Op::Send ? i.reads.front() : i.writes.front();
    return static_cast<std::int64_t>(plan->store->get(moved.slot).nbytes());
  }

  Error with_place(Error error, const Instruction& instruction) const {
    error.with({.rank = setup.rank, .step = order.step});
    error.with(place_of(instruction));
    return error;
  }

  void execute(const Instruction& instruction, std::size_t position) {
    switch (instruction.op) {
      case Op::Run:
        run_task(instruction);
        break;
      case Op::Send:
        transport->send(instruction.peer,
                        tag_of(instruction),
                        plan->store->get(instruction.reads.front().slot));
        break;
      case Op::Recv:
        receive(instruction, position);
        break;
      case Op::Free:
        free(instruction.reads.front());
        break;
      case Op::Accumulate:
        accumulate(instruction);
        break;
      case Op::Vote:
        cast_vote();
        break;
      case Op::Update:
        update(instruction.task.stage);
        break;
      case Op::Collective:
        reduce(instruction.group);
        break;
      case Op::Alloc:
        SC_CHECK(false, "lowering makes no " + to_string(instruction));
    }
  }

  [[nodiscard]] Tag tag_of(const Instruction& i) const {
    return {.plan = setup.plan_id,
            .epoch = order.epoch,
            .submission = order.submission,
            .edge = i.edge,
            .microbatch = i.task.microbatch};
  }

  /// Longest wait for a peer. The driver's deadline comes first: it knows which rank holds up the
  /// others.
  [[nodiscard]] std::chrono::milliseconds patience() const {
    return 2 * setup.options.step_deadline;
  }

  [[nodiscard]] Sequence sequence() const {
    return {.plan = setup.plan_id, .epoch = order.epoch, .submission = order.submission};
  }

  void receive(const Instruction& instruction, std::size_t position) {
    Future<at::Tensor> future = std::exchange(plan->received[position], {});
    const Stopwatch waiting(report.times.waiting);
    if (!future.ready() &&
        !progress->waits.wait({{instruction.peer, future}}, Clock::now() + patience())) {
      throw Error(
          Errc::ClusterTimeout,
          fmt::format("nothing arrived from {} within {} s for {}; its worker is stuck or gone",
                      peer_name(instruction.peer),
                      std::chrono::duration<double>(patience()).count(),
                      to_string(instruction.task)));
    }
    plan->store->put(instruction.writes.front().slot, future.get());
  }

  void free(const SlotUse& use) {
    const std::size_t slot = use.slot.index();
    if (use.value.role == Role::Saved) {
      plan->saved[slot].reset();
      --in_flight;
      plan->store->account(-setup.program->partition.stages[use.value.stage.index()].saved_bytes);
    } else if (use.value.role == Role::ParameterGradient) {
      plan->gradients[slot].reset();
    } else {
      plan->store->free(use.slot);
    }
  }

  void run_task(const Instruction& instruction) {
    StageRuntime& stage = stages.at(instruction.task.stage);
    switch (instruction.task.kind) {
      case CellKind::Forward: {
        const Stopwatch watch(report.times.forward);
        forward(stage, instruction);
        break;
      }
      case CellKind::Backward:
      case CellKind::BackwardInput:
      case CellKind::BackwardWeight: {
        const Stopwatch watch(report.times.backward);
        run_backward(stage, instruction);
        break;
      }
      case CellKind::Idle:
      case CellKind::Update:
        SC_CHECK(false, "a Run is a forward or a backward");
    }
  }

  /// The slot in which an instruction finds a value; a received activation is kept under the
  /// reader's name.
  static const SlotUse* find_use(const std::vector<SlotUse>& uses,
                                 ValueId value,
                                 Role role,
                                 StageId stage) {
    for (const SlotUse& use : uses) {
      if (use.value.value == value && use.value.role == role && use.value.stage == stage) {
        return &use;
      }
    }
    return nullptr;
  }

  void forward(StageRuntime& stage, const Instruction& instruction) {
    const StageProgram& program = *stage.program;
    const bool keeps_graph = order.training && setup.program->stage_graph.has_backward(program.id);
    const at::AutoGradMode grad(keeps_graph);
    Tensors inputs;
    Saved saved;
    for (const StageInput& input : program.inputs) {
      const SlotUse* use = find_use(instruction.reads, input.value, Role::Activation, program.id);
      if (use == nullptr) {
        use = find_use(instruction.reads, input.value, Role::Activation, input.from);
      }
      at::Tensor tensor = plan->store->get(use->slot).detach();
      if (keeps_graph && input.owes_gradient) {
        tensor.requires_grad_();
        saved.leaves.push_back(tensor);
      }
      inputs.push_back(std::move(tensor));
    }
    const Microbatch m = instruction.task.microbatch;
    StageResult result = stage.interpreter.run(
        inputs,
        stage.state,
        {.seed = setup.options.seed, .step = order.step.value, .microbatch = m.value});
    for (std::size_t i = 0; i < program.outputs.size(); ++i) {
      const SlotUse* use =
          find_use(instruction.writes, program.outputs[i].value, Role::Activation, program.id);
      plan->store->put(use->slot, result.outputs[i].detach());
    }
    if (result.loss.defined()) {
      losses[m] = result.loss.detach();
    }
    if (keeps_graph) {
      saved.outputs = std::move(result.outputs);
      saved.loss = std::move(result.loss);
      const SlotUse* use = find_use(instruction.writes, kNoValue, Role::Saved, program.id);
      plan->saved[use->slot.index()] = std::move(saved);
      report.times.peak_in_flight = std::max(report.times.peak_in_flight, ++in_flight);
      plan->store->account(program.saved_bytes);
    }
  }

  /// Per output the sum of what its consumers sent, latest-created consumer first: the order in
  /// which one process adds them, whatever arrived first.
  Tensors output_gradients(const StageProgram& program, const Instruction& instruction) {
    Tensors gradients(program.outputs.size());
    for (std::size_t i = 0; i < program.outputs.size(); ++i) {
      const StageOutput& output = program.outputs[i];
      for (std::size_t c = output.consumers.size(); c-- > 0;) {
        if (!output.gradient_from[c]) {
          continue;
        }
        const SlotUse* use =
            find_use(instruction.reads, output.value, Role::Gradient, output.consumers[c]);
        const at::Tensor& gradient = plan->store->get(use->slot);
        gradients[i] = gradients[i].defined() ? gradients[i] + gradient : gradient;
      }
    }
    return gradients;
  }

  void run_backward(StageRuntime& stage, const Instruction& instruction) {
    if (instruction.does_nothing()) {
      return;
    }
    const StageProgram& program = *stage.program;
    Saved& saved =
        *plan->saved[find_use(instruction.reads, kNoValue, Role::Saved, program.id)->slot.index()];
    const auto& edges = stage.bucket.gradient_edges();
    if (saved.input_half_done) {
      keep_parameter_gradients(instruction, backward_weight(saved, edges));
      return;
    }
    const std::vector<at::Tensor> leaves = saved.leaves;
    Gradients result;
    if (instruction.task.kind == CellKind::BackwardInput) {
      result.inputs = backward_input(saved, output_gradients(program, instruction), edges);
    } else {  // B, or W where I does nothing
      result = backward(saved, output_gradients(program, instruction), edges);
      keep_parameter_gradients(instruction, std::move(result.parameters));
    }
    std::size_t next = 0;
    for (const StageInput& input : program.inputs) {
      if (!input.owes_gradient) {
        continue;
      }
      const at::Tensor& gradient = result.inputs[next];
      const SlotUse* use = find_use(instruction.writes, input.value, Role::Gradient, program.id);
      plan->store->put(use->slot,
                       gradient.defined() ? gradient.contiguous() : at::zeros_like(leaves[next]));
      ++next;
    }
  }

  void keep_parameter_gradients(const Instruction& instruction, Tensors gradients) {
    const SlotUse* use =
        find_use(instruction.writes, kNoValue, Role::ParameterGradient, instruction.task.stage);
    if (use != nullptr) {
      plan->gradients[use->slot.index()] = std::move(gradients);
    }
  }

  void accumulate(const Instruction& instruction) {
    const Stopwatch watch(report.times.backward);
    stages.at(instruction.task.stage)
        .bucket.accumulate(*plan->gradients[instruction.reads.front().slot.index()]);
  }

  void reduce(int number) {
    std::vector<const Bucket*> mine;
    for (const StageId id : setup.train->replica_groups[static_cast<std::size_t>(number)].stages) {
      const auto stage = stages.find(id);
      if (stage != stages.end()) {
        mine.push_back(&stage->second.bucket);
      }
    }
    const Stopwatch waiting(report.times.waiting);
    sum_over_replicas(
        collective, *setup.train, number, mine, sequence(), Clock::now() + patience());
  }

  /// Losses leave the rank as numbers, in its answer.
  void read_losses() {
    for (const auto& [m, loss] : losses) {
      report.losses.push_back({m, loss.item<double>()});
    }
    losses.clear();
  }

  void cast_vote() {
    Ballot ballot;
    read_losses();
    for (const auto& [m, loss] : report.losses) {
      if (!std::isfinite(loss)) {
        const StageId stage = loss_stage();
        throw Error(
            Errc::NonFinite,
            fmt::format(
                "the loss of microbatch {} is {}; lower the learning rate, or clip gradients",
                m.value,
                loss))
            .with({.rank = setup.rank, .stage = stage, .microbatch = m, .step = order.step});
      }
    }
    {
      const Stopwatch watch(report.times.update);
      for (auto& [id, stage] : stages) {
        const std::vector<SquaredNorm> norms = stage.bucket.average(setup.train->microbatches);
        if (setup.program->stage_graph.replica_of(id) == 0) {  // the others have the same gradients
          ballot.squared_norms.insert(ballot.squared_norms.end(), norms.begin(), norms.end());
        }
      }
    }
    const Stopwatch waiting(report.times.waiting);
    verdict = vote(collective, group, sequence(), ballot, Clock::now() + patience());
    refuse_non_finite(*setup.program, *verdict, order.step);
    report.gradient_norm = verdict->total_norm;
    report.committed = true;
  }

  [[nodiscard]] StageId loss_stage() const {
    for (const auto& [id, stage] : stages) {
      if (stage.program->loss != kNoValue) {
        return id;
      }
    }
    return StageId(-1);
  }

  void update(StageId id) {
    const Stopwatch watch(report.times.update);
    stages.at(id).bucket.update(setup.optimizer,
                                order.learning_rate,
                                clip_scale(setup.options.clip, verdict->total_norm),
                                order.step.value + 1);
  }

  /// After the last instruction.
  void finish() {
    report.times.peak_bytes = plan->store->peak();
    if (recording) {
      timeline = recorder.take();
    }
    leave_step();
  }

  void leave_step() {
    progress->instruction.store(Progress::kBetweenSteps, std::memory_order_relaxed);
    if (!plan->ran) {
      plan->ran = true;
      arm_libtorch_gate();
    }
  }

  Error failure(const std::exception_ptr& thrown) const {
    Error error = foreign_error(thrown);
    error.with({.rank = setup.rank, .step = order.step});
    if (report.committed) {
      Error lost(Errc::WorkerLost,
                 "a rank failed after the vote, inside the update: its weights are undefined; load "
                 "a checkpoint");
      lost.with(error.context()).because(error);
      return lost;
    }
    return error;
  }

  void abandon(const std::vector<Tensors>& buffers) {
    plan->clear();
    losses.clear();
    restore_buffers(buffers);
    progress->instruction.store(Progress::kBetweenSteps, std::memory_order_relaxed);
  }

  [[nodiscard]] std::vector<Tensors> copy_buffers() const {
    std::vector<Tensors> copies;
    for (const auto& [id, stage] : stages) {
      copies.emplace_back();
      for (const at::Tensor& b : stage.state.buffers) {
        copies.back().push_back(b.clone());
      }
    }
    return copies;
  }

  void restore_buffers(const std::vector<Tensors>& copies) {
    const at::NoGradGuard no_grad;
    std::size_t next = 0;
    for (auto& [id, stage] : stages) {
      for (std::size_t b = 0; b < stage.state.buffers.size(); ++b) {
        stage.state.buffers[b].copy_(copies[next][b]);
      }
      ++next;
    }
  }
};

StageExecutor::StageExecutor(ExecutorSetup setup,
                             std::shared_ptr<Transport> transport,
                             std::shared_ptr<Progress> progress) {
  set_own_thread_count(
      setup.options.threads_per_worker);  // before any other call into LibTorch on this thread
  impl_ = std::make_unique<Impl>(std::move(setup), std::move(transport), std::move(progress));
  arm_libtorch_gate();
}

StageExecutor::~StageExecutor() = default;

StepReport StageExecutor::run(const StepOrder& order) {
  return impl_->run(order);
}

std::vector<InstructionTime> StageExecutor::take_timeline() {
  return std::exchange(impl_->timeline, {});
}

std::vector<StateTensor> StageExecutor::state() const {
  std::vector<StateTensor> result;
  for (const auto& [id, stage] : impl_->stages) {
    stage.append_state(*impl_->setup.program, result);
  }
  return result;
}

std::int64_t StageExecutor::bytes_held() const {
  return impl_->train.store->bytes() + impl_->evaluate.store->bytes();
}

}  // namespace stagecraft
