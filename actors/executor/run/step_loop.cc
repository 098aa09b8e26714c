#include "stagecraft/actors/executor/run/step_loop.h"

#include <cstdint>
#include <exception>
#include <utility>

#include "stagecraft/actors/executor/run/decided_tasks.h"
#include "stagecraft/actors/executor/run/overlap_group.h"
#include "stagecraft/actors/executor/step/foreign_error.h"
#include "stagecraft/base/process/process_end.h"
#include "stagecraft/compiler/libtorch/host_memory.h"
#include "stagecraft/compiler/libtorch/program_device.h"

namespace stagecraft {
namespace {

/// Returns whether the instruction runs only in the last batch of an update. Rounds serve the tasks
/// of their batch.
bool is_of_update(const PlanTables& tables, const Instruction& i) {
  if (!is_collective(i.op) || is_exchange(i)) {
    return i.op == Op::Vote || i.op == Op::Update;
  }
  const PlanGroup& group = tables.groups[static_cast<std::size_t>(i.group)];
  return gathers_weights(tables, i) ? !gathers_for_tasks(tables, group) : !group.has_rounds();
}

}  // namespace

StepLoop::StepLoop(const RankParts& rank, RunningStep& step, TimelineRecorder* recorder)
    : rank_(rank), step_(step), tasks_(step, rank.times, rank.trained), recorder_(recorder) {
  if (step.trains() && rank.setup.options.dispatch != Dispatch::Plan) {
    gate_.emplace(rank.transport,
                  rank.progress.waits,
                  rank.setup.options,
                  rank.values,
                  rank.trained,
                  Tag{.plan = rank.setup.plan_id,
                      .epoch = step.order.epoch,
                      .submission = step.order.submission});
  }
}

void StepLoop::run() {
  if (gate_ && rank_.setup.options.dispatch == Dispatch::Decided) {
    run_decided();
    return;
  }
  const std::vector<BoundInstruction>& list = step_.plan.bound.list;
  for (std::size_t i = 0; i < list.size();) {
    if (list[i].instruction->overlap >= 0) {
      i = run_group(i);
    } else {
      issue(i++);
    }
  }
}

/// Runs the tasks in the order in which the driver names them, then what belongs to no task.
void StepLoop::run_decided() {
  DecidedTasks tasks(step_.plan.bound.share->list->instructions);
  const auto issue_next = [&](std::size_t position) {
    issue(position);
    for (const std::size_t free : tasks.frees_after(position)) {
      issue(free);
    }
  };
  while (const std::optional<std::size_t> run = next_task()) {
    for (const std::size_t position : tasks.take(*run)) {
      issue_next(position);
    }
  }
  for (const std::size_t position : tasks.rest()) {
    issue_next(position);
  }
}

std::optional<std::size_t> StepLoop::next_task() {
  try {
    const auto waiting = rank_.times.pass(&RankTimes::waiting);
    return gate_->next();
  } catch (...) {
    throw foreign_error(std::current_exception())
        .with({.rank = rank_.setup.rank(), .step = step_.order.step});
  }
}

/// Issues the tasks of an overlap group. Returns the position after the group.
std::size_t StepLoop::run_group(std::size_t begin) {
  OverlapGroup tasks(step_.plan.bound.share->list->instructions, begin);
  while (!tasks.done()) {
    const auto [first, end] = tasks.take([this](const OverlapGroup::Block& block) {
      return step_.plan.transfers.have_arrived(block.begin, block.end);
    });
    for (std::size_t i = first; i < end; ++i) {
      issue(i);
    }
  }
  return tasks.end();
}

void StepLoop::issue(std::size_t position) {
  const BoundInstruction& bound = step_.plan.bound.list[position];
  const Instruction& instruction = *bound.instruction;
  const bool is_task = instruction.op == Op::Run;
  rank_.progress.begin(position);
  try {
    if (gate_ && rank_.setup.options.dispatch == Dispatch::PerTask &&
        (is_task || instruction.op == Op::Vote)) {
      const auto waiting = rank_.times.pass(&RankTimes::waiting);
      gate_->wait(position);
    }
    if (!step_.order.updates && is_of_update(*step_.plan.bound.share->tables, instruction)) {
      skip(bound, position);
      return;
    }
    const Device::Event start =
        recorder_ != nullptr ? rank_.device.record(instruction.stream) : Device::Event();
    begin(bound);
    execute(bound, position);
    if (bound.is_waited_for || recorder_ != nullptr) {
      const Device::Event end = rank_.device.record(instruction.stream);
      step_.plan.events[position] = end;
      if (recorder_ != nullptr) {
        record(bound, position, start, end);
      }
    }
    if (gate_ && is_task) {
      gate_->tell(position, instruction, step_.plan.slots);
    }
  } catch (...) {
    const PlanShare& share = *step_.plan.bound.share;
    throw foreign_error(std::current_exception())
        .with({.rank = rank_.setup.rank(), .step = step_.order.step})
        .with(place_of(*share.tables, share.rank, instruction));
  }
}

/// Makes sure that the instruction may run, and orders its stream after the events it waits for.
void StepLoop::begin(const BoundInstruction& bound) {
  if (rank_.setup.options.before_instruction) {
    const process_end::Elsewhere in_the_users_code;
    rank_.setup.options.before_instruction(rank_.setup.rank(), *bound.instruction);
  }
  process_end::gate();
  rank_.transport.require_current(
      rank_.setup.plan_id,
      rank_.commit.is_past_the_vote() ? kEndlessEpoch : step_.order.epoch);  // keeps X-4
  const StreamId stream = bound.instruction->stream;
  for (const std::size_t earlier : bound.waits) {
    rank_.device.wait(stream, step_.plan.events[earlier]);
  }
  rank_.device.use(stream);
}

void StepLoop::execute(const BoundInstruction& bound, std::size_t position) {
  LoadedPlan& plan = step_.plan;
  switch (bound.instruction->op) {
    case Op::Run:
      tasks_.run(bound);
      break;
    case Op::Send:
      send(bound, position);
      break;
    case Op::Recv:
      receive(bound, position);
      break;
    case Op::Free:
      plan.slots.free(bound.slot);
      break;
    case Op::Accumulate:
      tasks_.accumulate(bound);
      break;
    case Op::Start:
    case Op::Finish:
      if (is_exchange(*bound.instruction)) {
        exchange(bound);
      } else if (bound.instruction->op == Op::Start) {
        rank_.commit.start(*bound.instruction);
      } else {
        rank_.commit.finish(*bound.instruction);
      }
      break;
    case Op::Vote:
      rank_.commit.cast_vote(step_.losses.read());
      break;
    case Op::Update:
      rank_.commit.update(rank_.trained[bound.stage], bound.bucket);
      break;
    case Op::Regroup:
      tasks_.regroup(bound);
      break;
    case Op::Release:
      rank_.commit.release(*bound.instruction);
      break;
  }
}

void StepLoop::exchange(const BoundInstruction& bound) {
  const auto waiting = rank_.times.pass(&RankTimes::waiting);
  Exchanges::Stages stages;
  for (const Microbatch microbatch : bound.exchanged) {
    stages.push_back(&step_.shape(microbatch).stages[bound.stage]);
  }
  SavedStage& saved = step_.plan.slots.saved(bound.slot);
  if (bound.instruction->op == Op::Start) {
    rank_.exchanges.start(*bound.instruction, stages, saved);
  } else {
    const Deadline deadline = rank_.progress.waits.clock().now() + patience(rank_.setup.options);
    rank_.exchanges.finish(*bound.instruction, stages, saved, deadline);
  }
}

void StepLoop::send(const BoundInstruction& bound, std::size_t position) {
  step_.plan.transfers.send(position, as_sent(bound, step_.plan.slots.tensor(bound.slot)));
}

/// Tensors of a device stay there between ranks of a process. Between processes they go by NCCL, or
/// cross in the host's memory.
at::Tensor StepLoop::as_sent(const BoundInstruction& bound, const at::Tensor& tensor) {
  if (is_program_device(tensor.device())) {
    return tensor;
  }
  if (bound.peer != kDriver && rank_.transport.hands_over(bound.peer)) {
    return rank_.device.hand_over(bound.instruction->stream, tensor);
  }
  rank_.device.keep_for(bound.instruction->stream, tensor);
  if (step_.links != nullptr && step_.links->sends_to(bound.peer)) {
    return step_.links->send(bound.peer, tensor);
  }
  return bound.peer == kDriver ? tensor.cpu() : copy_to_host(tensor);  // users keep what they get
}

void StepLoop::receive(const BoundInstruction& bound, std::size_t position) {
  const auto waiting = rank_.times.pass(&RankTimes::waiting);
  at::Tensor tensor = step_.plan.transfers.take(position);
  if (step_.links != nullptr && step_.links->receives_from(bound.peer)) {
    tensor = step_.links->receive(bound.peer, tensor);
  } else {
    tensor = rank_.device.take_over(bound.instruction->stream, std::move(tensor));
  }
  rank_.device.keep_for(kCompute, tensor);
  step_.plan.slots.put(bound.slot, std::move(tensor));
}

/// Records an instruction that does not run. Only other skipped instructions wait for it.
void StepLoop::skip(const BoundInstruction& bound, std::size_t position) {
  if (recorder_ != nullptr) {
    const Device::Event now = rank_.device.record(bound.instruction->stream);
    recorder_->record(
        position, now, now, 0, step_.plan.slots.bytes(), step_.plan.slots.in_flight());
  }
}

void StepLoop::record(const BoundInstruction& bound,
                      std::size_t position,
                      Device::Event start,
                      Device::Event end) {
  recorder_->record(position,
                    start,
                    end,
                    bytes_moved(bound),
                    step_.plan.slots.bytes(),
                    step_.plan.slots.in_flight());
}

std::int64_t StepLoop::bytes_moved(const BoundInstruction& bound) const {
  return is_transfer(bound.instruction->op)
             ? static_cast<std::int64_t>(step_.plan.slots.tensor(bound.slot).nbytes())
             : 0;
}

}  // namespace stagecraft
