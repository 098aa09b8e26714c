#include "stagecraft/actors/executor/stage_executor.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include <ATen/TensorOperators.h>
#include <fmt/format.h>

#include "stagecraft/actors/executor/commit/commit.h"
#include "stagecraft/actors/executor/device/device.h"
#include "stagecraft/actors/executor/device/libtorch_gate.h"
#include "stagecraft/actors/executor/device/step_memory.h"
#include "stagecraft/actors/executor/device/step_times.h"
#include "stagecraft/actors/executor/foreign_error.h"
#include "stagecraft/actors/executor/run/loaded_program.h"
#include "stagecraft/actors/executor/run/overlap_group.h"
#include "stagecraft/actors/executor/run/regrouped.h"
#include "stagecraft/actors/executor/setup/verify_setup.h"
#include "stagecraft/actors/executor/stage/snapshot.h"
#include "stagecraft/actors/executor/stage/stage_runtime.h"
#include "stagecraft/actors/executor/step/step_parts.h"
#include "stagecraft/base/process_end.h"
#include "stagecraft/compiler/libtorch/thread_count.h"
#include "stagecraft/compiler/shapes/shape_variant.h"
#include "stagecraft/futures/collective/over_transport.h"

namespace stagecraft {
namespace {

using Tensors = std::vector<at::Tensor>;

LoadedProgram program_that_trains(const RankSetup& setup, std::unique_ptr<LoadedPlan> plan) {
  LoadedProgram program{.shapes = {}, .plan = std::move(plan)};
  for (const StageProgram& stage : setup.stages) {
    program.shapes[0].stages.emplace_back(stage, setup.optimizer, bucket_options(setup.options));
  }
  return program;
}

std::optional<Mirror> mirror_of(const RankSetup& setup,
                                const std::shared_ptr<Transport>& transport) {
  return setup.options.mirror ? std::optional<Mirror>(std::in_place, setup, transport)
                              : std::nullopt;
}

}  // namespace

struct StageExecutor::Impl {
  const RankSetup setup;
  StepMemory memory{setup.options.memory_limit};  // destroyed after all that lies in it
  std::shared_ptr<Transport> transport;
  std::shared_ptr<Progress> progress;
  std::unique_ptr<Device> device = cpu_device();
  std::map<std::int32_t, LoadedProgram> programs;
  std::vector<StageRuntime>& stages;  // ascending, of the training program
  StepTimes times{*device, setup.train.instructions.size()};
  TransportCollective collective;
  std::optional<Mirror> mirror;
  Commit commit;
  TimelineRecorder recorder;

  // State of the running step.
  LoadedProgram* program = nullptr;
  LoadedPlan* plan = nullptr;
  StepOrder order;
  // State of an update whose batches are under way (AC-1).
  std::int32_t accumulated = 0;
  std::optional<Snapshot> before_update;
  std::vector<MicrobatchLoss> losses;
  std::vector<std::pair<Microbatch, at::Tensor>> unread_losses;
  bool recording = false;
  std::vector<InstructionTime> timeline;

  Impl(RankSetup s, std::shared_ptr<Transport> t, std::shared_ptr<Progress> p)
      : setup(std::move(s)),
        transport(std::move(t)),
        progress(std::move(p)),
        stages(add_program_that_trains()),
        collective(transport, {progress, &progress->waits}),
        mirror(mirror_of(setup, transport)),
        commit(setup, collective, times, stages, mirror ? &*mirror : nullptr),
        recorder(setup.train.instructions.size(), *device) {}
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  [[nodiscard]] std::unique_ptr<LoadedPlan> load(const RankPlan& list,
                                                 const BindScope& scope) const {
    return std::make_unique<LoadedPlan>(list,
                                        scope,
                                        transport,
                                        std::shared_ptr<WaitBoard>(progress, &progress->waits),
                                        patience(setup.options));
  }

  std::vector<StageRuntime>& add_program_that_trains() {
    auto list =
        load(setup.train, bind_scope(setup));  // first: a refused list then allocates no weights
    return programs.emplace(kTraining, program_that_trains(setup, std::move(list)))
        .first->second.stages();
  }

  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(Errc::PlanInvalid,
                fmt::format("what came for another shape or for evaluation does not fit rank {}: "
                            "{}",
                            setup.rank.value,
                            what));
  }

  void add(RankShapeVariant given) {
    const auto known = programs.find(given.program);
    const bool new_program = given.number == 0;
    if (given.rank != setup.rank || given.number < 0 || given.program < kTraining ||
        (new_program ? given.program == kTraining : known == programs.end()) ||
        !std::ranges::equal(setup.stages, given.stages, {}, &StageProgram::id, &StageProgram::id)) {
      refuse("it is of other stages, or of no program");
    }
    if (new_program) {
      add_evaluation(std::move(given));
    } else {
      add_shape(known->second, std::move(given), misfit);
    }
  }

  void add_evaluation(RankShapeVariant given) {
    const std::int32_t number = given.program;
    if (const auto faults = verify(given.list, setup); !faults.empty()) {
      refuse(faults.front());
    }
    LoadedProgram added;
    add_shape(added, std::move(given), misfit_of_evaluation);
    const RankShapeVariant& told = added.shapes.at(0).told;
    BindScope scope{.stages = {}, .training = false};
    for (const StageProgram& stage : told.stages) {
      scope.stages.push_back(&stage);
    }
    added.plan = load(told.list, scope);
    programs.erase(number);  // free the old program's memory first
    programs.emplace(number, std::move(added));
  }

  /// `fault`: returns why a stage cannot run in the place of another.
  void add_shape(LoadedProgram& to,
                 RankShapeVariant given,
                 std::string (*fault)(const StageProgram&, const StageProgram&)) {
    const std::vector<StageRuntime>& like = given.number == 0 ? stages : to.stages();
    for (std::size_t s = 0; s < like.size(); ++s) {
      const StageProgram& stage = *like[s].program;
      if (const std::string found = fault(stage, given.stages[s]); !found.empty()) {
        refuse(fmt::format("stage {} {}", stage.id.value, found));
      }
    }
    LoadedShape& shape = to.shapes[given.number];
    shape.stages.clear();  // first: they view the old variant's programs
    shape.told = std::move(given);
    for (std::size_t s = 0; s < like.size(); ++s) {
      shape.stages.emplace_back(shape.told.stages[s], like[s]);
    }
  }

  /// Errors: PlanInvalid for an order that this rank cannot run.
  void check_order(const StepOrder& step) const {
    std::int64_t count = step.parts.empty() ? setup.microbatches : 0;
    const auto known = programs.find(step.program);
    bool sound = known != programs.end();
    for (const PartRun& run : step.parts) {
      const bool weighs = run.weight > 0.0 || (step.program != kTraining && run.weight == 0.0);
      sound = sound && run.count > 0 && weighs && std::isfinite(run.weight) &&
              known->second.shapes.contains(run.variant);
      count += run.count;
    }
    if (!sound || count != setup.microbatches) {
      throw Error(Errc::PlanInvalid,
                  "a step was ordered whose microbatches have shapes that this rank was not told "
                  "of, or numbers and weights that make no sense")
          .with({.rank = setup.rank, .step = step.step});
    }
    if (step.accumulated != 0 && step.accumulated != accumulated) {
      throw Error(Errc::PlanInvalid,
                  fmt::format("a batch was ordered behind {} others of its update, and this rank "
                              "has kept the gradients of {}",
                              step.accumulated,
                              accumulated))
          .with({.rank = setup.rank, .step = step.step});
    }
  }

  void drop_accumulated() {
    if (before_update) {
      before_update->restore();
    }
    before_update.reset();
    accumulated = 0;
  }

  /// Keeps AC-1. `before`: the snapshot from before the batch just trained on.
  void keep_accumulated(const Snapshot& before) {
    if (order.updates) {
      before_update.reset();
      accumulated = 0;
    } else {
      if (!before_update) {
        before_update.emplace(before);
      }
      ++accumulated;
    }
  }

  /// Returns shape and weight of an instruction's microbatch.
  [[nodiscard]] PartRun part(const BoundInstruction& bound) const {
    return part_of(order.parts, bound.instruction->task.microbatch.index());
  }

  [[nodiscard]] const LoadedShape& shape_of(const BoundInstruction& bound) const {
    return program->shapes.at(part(bound).variant);
  }

  /// Returns the stage of a task, in the variant for its microbatch's shape.
  [[nodiscard]] const StageRuntime& stage_of(const BoundInstruction& bound) const {
    return shape_of(bound).stages[bound.stage];
  }

  StepReport run(const StepOrder& step, const LocalRead& local) {
    check_order(step);
    if (step.accumulated == 0) {
      drop_accumulated();
    }
    order = step;
    program = &programs.at(step.program);
    plan = program->plan.get();
    const StepMemory::Scope in_the_pool(memory);
    const Snapshot before(program->stages());
    times.begin_step();
    try {
      {
        const auto wall = times.pass(&RankTimes::wall);
        begin(local);
        for (std::size_t i = 0; i < plan->bound.list.size();) {
          i = plan->bound.list[i].instruction->overlap < 0 ? issue(i) : issue_group(i);
        }
        device->synchronize();
        mirror_commit();
      }
      read_losses();
      if (step.program != kTraining) {
        before.restore();
      } else if (!step.updates) {
        commit.refuse_non_finite_losses(losses);
      }
      StepReport report = finish();
      if (step.program == kTraining) {
        keep_accumulated(before);
      }
      return report;
    } catch (...) {
      const Error error = failure(std::current_exception());
      device->synchronize();  // so that nothing uses the slots and buffers any more
      plan->clear();
      before.restore();
      if (step.program == kTraining) {
        drop_accumulated();
      }
      progress->instruction.store(Progress::kBetweenSteps, std::memory_order_relaxed);
      throw error;
    }
  }

  void begin(const LocalRead& local) {
    losses.clear();
    unread_losses.clear();
    plan->slots.begin_step();
    commit.begin_step(
        order, {.plan = setup.plan_id, .epoch = order.epoch, .submission = order.submission});
    timeline.clear();
    recording = setup.options.record_timeline && order.program == kTraining;
    progress->program.store(order.program, std::memory_order_relaxed);
    plan->transfers.begin(
        {.plan = setup.plan_id, .epoch = order.epoch, .submission = order.submission}, local);
    if (recording) {
      recorder.begin_step();
      for (const std::size_t position : plan->bound.receives) {
        recorder.expect(position, plan->transfers.arrival(position));
      }
    }
  }

  /// Issues the tasks of a group. Returns the position after the group.
  std::size_t issue_group(std::size_t begin) {
    OverlapGroup tasks(plan->bound.plan->instructions, begin);
    while (!tasks.done()) {
      const auto [first, end] = tasks.take([this](const auto& block) {
        return plan->transfers.have_arrived(block.begin, block.end);
      });
      for (std::size_t i = first; i < end; ++i) {
        issue(i);
      }
    }
    return tasks.end();
  }

  /// Returns whether the instruction runs only in the last batch of an update.
  static bool is_of_update(Op op) {
    return op == Op::Collective || op == Op::Vote || op == Op::Update;
  }

  /// Records an instruction that is skipped. Only other skipped instructions wait for it.
  void pass_over(const BoundInstruction& bound, std::size_t position) {
    if (recording) {
      const Device::Event now = device->record(bound.instruction->stream);
      recorder.record(position, now, now, 0, plan->slots.bytes(), plan->slots.in_flight());
    }
  }

  /// Issues an instruction, or skips it. Returns the position after it.
  std::size_t issue(std::size_t position) {
    const BoundInstruction& bound = plan->bound.list[position];
    const Stream stream = bound.instruction->stream;
    if (!order.updates && is_of_update(bound.instruction->op)) {
      pass_over(bound, position);
      return position + 1;
    }
    progress->begin(position);
    const Device::Event start = recording ? device->record(stream) : Device::Event();
    try {
      if (setup.options.before_instruction) {
        const process_end::Elsewhere in_the_users_code;
        setup.options.before_instruction(setup.rank, *bound.instruction);
      }
      process_end::gate();
      transport->require_current(setup.plan_id,
                                 commit.is_past_the_vote() ? kEndlessEpoch : order.epoch);
      for (const std::size_t earlier : bound.waits) {
        device->wait(stream, plan->events[earlier]);
      }
      device->use(stream);
      execute(bound, position);
    } catch (...) {
      throw foreign_error(std::current_exception())
          .with({.rank = setup.rank, .step = order.step})
          .with(place_of(*bound.instruction));
    }
    if (bound.is_waited_for) {
      plan->events[position] = device->record(stream);
    }
    if (recording) {
      recorder.record(position,
                      start,
                      device->record(stream),
                      bytes_moved(bound),
                      plan->slots.bytes(),
                      plan->slots.in_flight());
    }
    return position + 1;
  }

  void execute(const BoundInstruction& bound, std::size_t position) {
    switch (bound.instruction->op) {
      case Op::Run:
        run_task(bound);
        break;
      case Op::Send:
        plan->transfers.send(position, plan->slots.tensor(bound.slot));
        break;
      case Op::Recv:
        receive(bound, position);
        break;
      case Op::Free:
        plan->slots.free(bound.slot);
        break;
      case Op::Accumulate:
        accumulate(bound);
        break;
      case Op::Collective:
        commit.sum(*bound.instruction);
        break;
      case Op::Vote:
        read_losses();
        commit.cast_vote(losses);
        break;
      case Op::Update:
        commit.update(stages[bound.stage]);
        break;
      case Op::Regroup:
        regroup(bound);
        break;
    }
  }

  void receive(const BoundInstruction& bound, std::size_t position) {
    const auto waiting = times.pass(&RankTimes::waiting);
    plan->slots.put(bound.slot, plan->transfers.take(position));
  }

  void regroup(const BoundInstruction& bound) {
    const bool forward = bound.instruction->task.kind == CellKind::Forward;
    const auto computing = times.compute(forward ? &RankTimes::forward : &RankTimes::backward);
    Tensors parts;
    for (const SlotId slot : bound.inputs) {
      parts.push_back(plan->slots.tensor(slot));
    }
    plan->slots.put(bound.slot, regrouped(parts, bound.instruction->rows));
  }

  void run_task(const BoundInstruction& bound) {
    if (bound.instruction->task.kind == CellKind::Forward) {
      run_forward(bound);
    } else if (!bound.instruction->does_nothing()) {
      run_backward(bound);
    }
  }

  /// Returns the microbatches of the update before this batch (keeps AC-2). An evaluation draws as
  /// if it were alone.
  [[nodiscard]] std::int64_t microbatches_before() const {
    return order.program == kTraining ? std::int64_t{order.accumulated} * setup.microbatches : 0;
  }

  void run_forward(const BoundInstruction& bound) {
    const auto computing = times.compute(&RankTimes::forward);
    const StageRuntime& stage = stage_of(bound);
    const Microbatch m = bound.instruction->task.microbatch;
    Tensors inputs;
    for (const SlotId slot : bound.inputs) {
      inputs.push_back(plan->slots.tensor(slot));
    }
    const bool keeps_graphs = bound.saved.value >= 0;
    StageForward made = stage.forward(inputs,
                                      keeps_graphs,
                                      {.seed = order.seed,
                                       .step = order.step.value,
                                       .microbatch = m.value + microbatches_before(),
                                       .shape = shape_of(bound).told.random});
    for (std::size_t i = 0; i < made.outputs.size(); ++i) {
      plan->slots.put(bound.outputs[i], std::move(made.outputs[i]));
    }
    if (made.loss.defined()) {
      unread_losses.emplace_back(m, std::move(made.loss));
    }
    if (keeps_graphs) {
      plan->slots.put(bound.saved, std::move(made.saved), stage.program->saved_bytes);
    }
  }

  void run_backward(const BoundInstruction& bound) {
    const auto computing = times.compute(&RankTimes::backward);
    const CellKind kind = bound.instruction->task.kind;
    const StageRuntime& stage = stage_of(bound);
    const StageProgram& of_stage = *stage.program;
    SavedStage& saved = plan->slots.saved(bound.saved);
    if (of_stage.recomputes() && !saved.front().input_half_done) {
      const bool till_weights = kind == CellKind::BackwardInput;
      plan->slots.now_keeps(bound.saved,
                            of_stage.saved_bytes + (till_weights ? of_stage.replayed_bytes()
                                                                 : of_stage.largest_replay()));
    }
    StageGradients made = stage.backward(
        kind,
        saved,
        output_gradients(bound),
        bound.is_accumulated_next ? std::optional(part(bound).weight) : std::nullopt);
    for (std::size_t i = 0; i < made.inputs.size(); ++i) {
      plan->slots.put(bound.input_gradients[i], std::move(made.inputs[i]));
    }
    if (bound.parameter_gradients.value >= 0) {
      plan->slots.put(bound.parameter_gradients, std::move(made.parameters));
    }
  }

  /// Returns, per output, the sum of its consumers' gradients, in the order in which they are
  /// bound.
  [[nodiscard]] Tensors output_gradients(const BoundInstruction& bound) const {
    Tensors gradients(bound.output_gradients.size());
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      for (const SlotId slot : bound.output_gradients[i]) {
        const at::Tensor& gradient = plan->slots.tensor(slot);
        gradients[i] = gradients[i].defined() ? gradients[i] + gradient : gradient;
      }
    }
    return gradients;
  }

  void accumulate(const BoundInstruction& bound) {
    const auto computing = times.compute(&RankTimes::backward);
    stages[bound.stage].bucket.accumulate(plan->slots.parameter_gradients(bound.slot),
                                          part(bound).weight);
  }

  void mirror_commit() {
    if (mirror && commit.is_past_the_vote()) {
      const auto copying = times.pass(&RankTimes::update);
      mirror->committed(order.submission, order.step.value + 1, state());
    }
  }

  [[nodiscard]] std::vector<StateTensor> state() const {
    std::vector<StateTensor> all;
    for (const StageRuntime& stage : stages) {
      stage.append_state(all);
    }
    return all;
  }

  [[nodiscard]] std::int64_t bytes_moved(const BoundInstruction& bound) const {
    const Op op = bound.instruction->op;
    return op == Op::Send || op == Op::Recv
               ? static_cast<std::int64_t>(plan->slots.tensor(bound.slot).nbytes())
               : 0;
  }

  /// Converts losses to numbers for the report. It runs when nothing else is left to compute, so
  /// that no stage waits for it.
  void read_losses() {
    for (const auto& [m, loss] : unread_losses) {
      losses.push_back({m, loss.item<double>()});
    }
    unread_losses.clear();
    std::ranges::sort(losses, {}, &MicrobatchLoss::microbatch);
  }

  StepReport finish() {
    StepReport report{.rank = setup.rank, .submission = order.submission};
    report.losses = std::move(losses);
    report.times = times.take();
    report.times.peak_bytes = plan->slots.peak();
    report.times.peak_in_flight = plan->slots.peak_in_flight();
    report.times.memory = memory.use();
    if (commit.is_past_the_vote()) {
      report.committed = true;
      report.gradient_norm = commit.gradient_norm();
    }
    if (recording) {
      timeline = recorder.take();
    }
    progress->instruction.store(Progress::kBetweenSteps, std::memory_order_relaxed);
    if (!plan->has_run) {
      plan->has_run = true;
      arm_libtorch_gate();
    }
    return report;
  }

  [[nodiscard]] Error failure(const std::exception_ptr& thrown) const {
    Error error = foreign_error(thrown);
    error.with({.rank = setup.rank, .step = order.step});
    if (!commit.is_past_the_vote()) {
      return error;
    }
    Error lost(Errc::WorkerLost,
               "a rank failed after the vote, inside the update: its weights are undefined; load a "
               "checkpoint");
    lost.with(error.context()).because(error);
    return lost;
  }
};

StageExecutor::StageExecutor(RankSetup setup,
                             std::shared_ptr<Transport> transport,
                             std::shared_ptr<Progress> progress) {
  set_own_thread_count(
      setup.options.threads_per_worker);  // before any other call into LibTorch on this thread
  impl_ = std::make_unique<Impl>(std::move(setup), std::move(transport), std::move(progress));
  arm_libtorch_gate();
}

StageExecutor::~StageExecutor() = default;

void StageExecutor::add_variant(RankShapeVariant variant) {
  impl_->add(std::move(variant));
}

StepReport StageExecutor::run(const StepOrder& order, const LocalRead& local) {
  return impl_->run(order, local);
}

std::vector<InstructionTime> StageExecutor::take_timeline() {
  return std::exchange(impl_->timeline, {});
}

void StageExecutor::load(const std::vector<StateTensor>& state) {
  for (StageRuntime& stage : impl_->stages) {
    stage.load(state);
  }
}

std::vector<StateTensor> StageExecutor::gradients() const {
  std::vector<StateTensor> result;
  for (const StageRuntime& stage : impl_->stages) {
    for (StateTensor& gradient : stage.bucket.gradients()) {
      result.push_back(std::move(gradient));
    }
  }
  return result;
}

std::vector<StateTensor> StageExecutor::state() const {
  return impl_->state();
}

std::vector<StateTensor> StageExecutor::committed_state() const {
  std::vector<StateTensor> all = impl_->state();
  if (impl_->before_update) {
    for (StateTensor& one : all) {
      one.tensor = impl_->before_update->as_it_was(one.tensor);
    }
  }
  return all;
}

void StageExecutor::drop_accumulated() {
  impl_->drop_accumulated();
}

Mirror* StageExecutor::mirror() {
  return impl_->mirror ? &*impl_->mirror : nullptr;
}

std::int64_t StageExecutor::bytes_held() const {
  std::int64_t bytes = 0;
  for (const auto& [number, program] : impl_->programs) {
    bytes += program.plan->slots.bytes();
  }
  return bytes;
}

}  // namespace stagecraft
