#include "stagecraft/actors/executor/setup/bound_plan.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

/// Looks up the slots of one task.
class TaskSlots {
 public:
  TaskSlots(const RankPlan& plan, const Instruction& instruction, const StageProgram& stage)
      : plan_(&plan), instruction_(&instruction), stage_(&stage) {}

  void bind_forward(BoundInstruction& bound) const {
    for (const StageInput& input : stage_->inputs) {
      // A received value has the reader's name, a value made on this rank its maker's.
      std::optional<SlotId> slot = reads({input.value, Role::Activation, stage_->id});
      if (!slot) {
        slot = reads({input.value, Role::Activation, input.from});
      }
      bound.inputs.push_back(required(slot, fmt::format("its input %{}", input.value.value)));
    }
    for (const StageOutput& output : stage_->outputs) {
      bound.outputs.push_back(required(writes({output.value, Role::Activation, stage_->id}),
                                       fmt::format("its output %{}", output.value.value)));
    }
    bound.saved = writes({kNoValue, Role::Saved, stage_->id}).value_or(SlotId(-1));
  }

  /// `rest`: the input half has run.
  void bind_backward(BoundInstruction& bound, bool rest) const {
    if (instruction_->does_nothing()) {
      return;  // P-8
    }
    bound.saved =
        required(reads({kNoValue, Role::Saved, stage_->id}), "the values that its forward saved");
    bound.parameter_gradients =
        writes({kNoValue, Role::ParameterGradient, stage_->id}).value_or(SlotId(-1));
    for (const StageOutput& output : stage_->outputs) {
      bound.output_gradients.push_back(rest ? std::vector<SlotId>{} : gradients_of(output));
    }
    for (const StageInput& input : stage_->inputs) {
      if (!input.owes_gradient) {
        continue;
      }
      if (const auto slot = writes({input.value, Role::Gradient, stage_->id})) {
        bound.input_gradients.push_back(*slot);
      }
    }
    const auto owed = std::ranges::count(stage_->inputs, true, &StageInput::owes_gradient);
    const auto made = std::ssize(bound.input_gradients);
    if (made != (rest ? 0 : owed)) {
      refuse(fmt::format("has slots for {} gradients of inputs and owes {}", made, owed));
    }
  }

  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(Errc::PlanInvalid,
                fmt::format("the list of rank {} does not fit stage \"{}\": {} {}",
                            plan_->rank.value,
                            stage_->name,
                            to_string(*instruction_),
                            what))
        .with(place_of(*instruction_));
  }

 private:
  /// Returns the slots of the consumers' gradients, latest-created consumer first. One process adds
  /// them in this order, so the order of arrival does not matter.
  [[nodiscard]] std::vector<SlotId> gradients_of(const StageOutput& output) const {
    std::vector<SlotId> slots;
    for (std::size_t c = output.consumers.size(); c-- > 0;) {
      if (!output.gradient_from[c]) {
        continue;
      }
      if (const auto slot = reads({output.value, Role::Gradient, output.consumers[c]})) {
        slots.push_back(*slot);
      } else {
        refuse(fmt::format("has no slot for the gradient of its output %{} from stage {}",
                           output.value.value,
                           output.consumers[c].value));
      }
    }
    return slots;
  }

  [[nodiscard]] static std::optional<SlotId> find(const std::vector<SlotUse>& uses, ValueKey key) {
    const auto found = std::ranges::find(uses, key, &SlotUse::value);
    return found == uses.end() ? std::nullopt : std::optional(found->slot);
  }
  [[nodiscard]] std::optional<SlotId> reads(ValueKey key) const {
    key.microbatch = instruction_->task.microbatch;
    return find(instruction_->reads, key);
  }
  [[nodiscard]] std::optional<SlotId> writes(ValueKey key) const {
    key.microbatch = instruction_->task.microbatch;
    return find(instruction_->writes, key);
  }

  [[nodiscard]] SlotId required(std::optional<SlotId> slot, const std::string& what) const {
    if (!slot) {
      refuse("has no slot for " + what);
    }
    return *slot;
  }

  const RankPlan* plan_;
  const Instruction* instruction_;
  const StageProgram* stage_;
};

void check(const RankPlan& plan, const BindScope& scope) {
  std::vector<std::string> faults = verify(plan, scope.training);
  if (!std::ranges::equal(plan.stages, scope.stages, {}, {}, &StageProgram::id)) {
    faults.push_back(fmt::format("rank {} has other stages than its list", plan.rank.value));
  }
  for (const Instruction& i : plan.instructions) {
    const bool tie = i.collective == CollectiveKind::AllGather;
    const std::size_t groups = tie ? scope.ties : scope.replica_groups;
    if (i.op == Op::Collective && (i.group < 0 || static_cast<std::size_t>(i.group) >= groups)) {
      faults.push_back(
          fmt::format("the rank sums in {} {}, of {}", tie ? "tie" : "group", i.group, groups));
    }
  }
  if (!faults.empty()) {
    throw Error(Errc::PlanInvalid,
                fmt::format("the plan breaks its rules: {}", fmt::join(faults, "; ")));
  }
}

/// Checks the order of the backwards of a stage and microbatch: a whole one, or the input half
/// before the weight half, each once. A weight half without the other does all.
class Turns {
 public:
  /// Returns whether the task may come now.
  bool take(const Task& task) {
    Kinds& done = done_[{task.stage, task.microbatch}];
    const bool in_turn = task.kind == CellKind::Forward ? done.empty()
                         : task.kind == CellKind::BackwardWeight
                             ? std::ranges::find(done, task.kind) == done.end() &&
                                   std::ranges::find(done, CellKind::Backward) == done.end()
                             : std::ranges::none_of(done, is_backward);
    done.push_back(task.kind);
    return in_turn;
  }

  [[nodiscard]] bool input_half_is_done(const Task& task) const {
    const auto done = done_.find({task.stage, task.microbatch});
    return done != done_.end() &&
           std::ranges::find(done->second, CellKind::BackwardInput) != done->second.end();
  }

 private:
  using Kinds = std::vector<CellKind>;
  static bool is_backward(CellKind kind) { return kind != CellKind::Forward; }

  std::map<std::pair<StageId, Microbatch>, Kinds> done_;
};

/// Returns whether the stage's bucket gets the parameter gradients of the task at `position` before
/// any others.
bool is_accumulated_next(const std::vector<BoundInstruction>& list, std::size_t position) {
  const BoundInstruction& run = list[position];
  const auto next =
      std::find_if(list.begin() + static_cast<std::ptrdiff_t>(position) + 1,
                   list.end(),
                   [&](const BoundInstruction& b) {
                     return b.stage == run.stage && (b.instruction->op == Op::Accumulate ||
                                                     b.parameter_gradients.value >= 0);
                   });
  return next != list.end() && next->instruction->op == Op::Accumulate &&
         next->slot == run.parameter_gradients;
}

bool is_of_a_stage(Op op) {
  return op == Op::Run || op == Op::Accumulate || op == Op::Update;
}

}  // namespace

BoundPlan bind_plan(const RankPlan& plan, const BindScope& scope) {
  check(plan, scope);  // keeps BP-1
  Turns turns;
  BoundPlan bound{.plan = &plan, .list = {}, .receives = {}};
  bound.list.reserve(plan.instructions.size());
  std::unordered_map<InstructionId, std::size_t> position_of;
  for (const Instruction& i : plan.instructions) {
    BoundInstruction b{.instruction = &i};
    for (const InstructionId id : i.waits) {
      const std::size_t position = position_of.at(id);
      if (plan.instructions[position].stream != i.stream) {
        b.waits.push_back(position);
        bound.list[position].is_waited_for = true;
      }
    }
    if (is_of_a_stage(i.op)) {
      b.stage = static_cast<std::size_t>(std::ranges::lower_bound(plan.stages, i.task.stage) -
                                         plan.stages.begin());
    }
    if (i.op == Op::Run) {
      const TaskSlots slots(plan, i, *scope.stages[b.stage]);
      if (i.task.kind == CellKind::Forward) {
        slots.bind_forward(b);
      } else {
        slots.bind_backward(b, turns.input_half_is_done(i.task));
      }
      if (!i.does_nothing() && !turns.take(i.task)) {
        slots.refuse("is out of order: the halves of a backward come once, I before W");
      }
    } else if (i.op == Op::Regroup) {
      for (const SlotUse& use : i.reads) {
        b.inputs.push_back(use.slot);
      }
      b.slot = i.writes.front().slot;
    } else if (i.reads.size() + i.writes.size() == 1) {
      b.slot = (i.reads.empty() ? i.writes : i.reads).front().slot;
    }
    if (i.op == Op::Recv) {
      bound.receives.push_back(bound.list.size());
    }
    position_of.emplace(i.id, bound.list.size());
    bound.list.push_back(std::move(b));
  }
  for (std::size_t i = 0; i < bound.list.size(); ++i) {
    bound.list[i].is_accumulated_next =
        bound.list[i].parameter_gradients.value >= 0 && is_accumulated_next(bound.list, i);
  }
  return bound;
}

}  // namespace stagecraft
