#include "stagecraft/actors/executor/setup/bound_plan.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

bool has(const ChunkRange& range, int chunk) {
  return chunk >= range.first && chunk < range.end();
}

/// A stage of the list, with everything that binding looks up in it.
struct ListedStage {
  ListedStage(const PlanShare& share, std::size_t position, const StageProgram& of)
      : program(&of),
        numbers(numbers_of_copy(share.tables->stages, share.stage(position).copy)),
        chunks(static_cast<std::int32_t>(of.chunks.size())) {
    for (const StageInput& input : of.inputs) {
      first_readers.push_back(first_reader(of, input.value));
    }
    for (const StageOutput& output : of.outputs) {
      makers.push_back(maker_of(of, output.value));
      last_users.push_back(last_user(of, output.value));
    }
  }

  const StageProgram* program;
  std::vector<StageId> numbers;  ///< of the stages of its copy, by the program's number
  std::int32_t chunks;
  std::vector<int> first_readers;       ///< by input
  std::vector<int> makers, last_users;  ///< by output
  bool has_backward = false;            ///< the list runs one that does something
};

/// Looks up the slots of one task.
class TaskSlots {
 public:
  TaskSlots(const PlanShare& share, const Instruction& instruction, const ListedStage& stage)
      : share_(&share),
        instruction_(&instruction),
        stage_(&stage),
        program_(stage.program),
        own_(instruction.task.stage) {}

  void bind_forward(BoundInstruction& bound) const {
    const ChunkRange& chunks = instruction_->chunks;
    for (std::size_t i = 0; i < program_->inputs.size(); ++i) {
      const StageInput& input = program_->inputs[i];
      if (!has(chunks, stage_->first_readers[i])) {
        bound.inputs.emplace_back(-1);
        continue;
      }
      // A received value has the reader's name, a value made on this rank its maker's.
      std::optional<SlotId> slot = reads({input.value, Role::Activation, own_});
      if (!slot && input.source == StageInput::Source::Stage) {
        slot = reads({input.value, Role::Activation, stage_->numbers[input.from.index()]});
      }
      bound.inputs.push_back(required(slot, fmt::format("its input %{}", input.value.value)));
    }
    for (std::size_t o = 0; o < program_->outputs.size(); ++o) {
      const ValueId value = program_->outputs[o].value;
      bound.outputs.push_back(has(chunks, stage_->makers[o])
                                  ? required(writes({value, Role::Activation, own_}),
                                             fmt::format("its output %{}", value.value))
                                  : SlotId(-1));
    }
    bound.begins = chunks.first == 0;
    const ValueKey saved{kNoValue, Role::Saved, own_};
    bound.saved = (bound.begins ? writes(saved) : reads(saved)).value_or(SlotId(-1));
    if (bound.saved.value < 0 && (!bound.begins || chunks.count < stage_->chunks)) {
      refuse("has no slot for what its chunks hand to the others");
    }
  }

  /// `rest`: the input half has run.
  void bind_backward(BoundInstruction& bound, bool rest) const {
    if (instruction_->does_nothing()) {
      return;  // P-8
    }
    bound.saved =
        required(reads({kNoValue, Role::Saved, own_}), "the values that its forward saved");
    bound.parameter_gradients = writes({.value = kNoValue,
                                        .role = Role::ParameterGradient,
                                        .stage = own_,
                                        .chunk = instruction_->chunks.first})
                                    .value_or(SlotId(-1));
    for (std::size_t o = 0; o < program_->outputs.size(); ++o) {
      const bool now = !rest && has(instruction_->chunks, stage_->last_users[o]);
      bound.output_gradients.push_back(now ? gradients_of(program_->outputs[o])
                                           : std::vector<SlotId>{});
    }
    std::ptrdiff_t owed = 0;
    for (std::size_t i = 0; i < program_->inputs.size(); ++i) {
      const StageInput& input = program_->inputs[i];
      if (rest || !input.owes_gradient || !has(instruction_->chunks, stage_->first_readers[i])) {
        continue;
      }
      ++owed;
      if (const auto slot = writes({input.value, Role::Gradient, own_})) {
        bound.input_gradients.push_back(*slot);
      }
    }
    if (const auto made = std::ssize(bound.input_gradients); made != owed) {
      refuse(fmt::format("has slots for {} gradients of inputs and owes {}", made, owed));
    }
  }

  [[noreturn]] void refuse(const std::string& what) const {
    throw Error(Errc::PlanInvalid,
                fmt::format("the list of rank {} does not fit stage \"{}\": {} {}",
                            share_->rank.rank.value,
                            program_->name,
                            to_string(share_->rank, *instruction_),
                            what))
        .with(place_of(*share_->tables, share_->rank, *instruction_));
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
      const StageId consumer = stage_->numbers[output.consumers[c].index()];
      if (const auto slot = reads({output.value, Role::Gradient, consumer})) {
        slots.push_back(*slot);
      } else {
        refuse(fmt::format("has no slot for the gradient of its output %{} from stage {}",
                           output.value.value,
                           consumer.value));
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

  const PlanShare* share_;
  const Instruction* instruction_;
  const ListedStage* stage_;
  const StageProgram* program_;
  StageId own_;
};

/// Checks that the programs are those of the list's stages, with all their neighbors.
std::string fault_in(const PlanShare& share, const StagePrograms& programs) {
  const std::string name = peer_name(share.rank.rank);
  if (programs.size() != share.list->stages.size()) {
    return name + " has other stages than its list";
  }
  for (std::size_t s = 0; s < programs.size(); ++s) {
    const PlanStage& stage = share.stage(s);
    const std::vector<StageId> numbers = numbers_of_copy(share.tables->stages, stage.copy);
    const auto known = [&](StageId other) {
      return other.value >= 0 && other.index() < numbers.size();
    };
    const auto knows_consumers = [&](const StageOutput& output) {
      return std::ranges::all_of(output.consumers, known);
    };
    const auto knows_maker = [&](const StageInput& input) {
      return input.source != StageInput::Source::Stage || known(input.from);
    };
    if (programs[s]->id != stage.program ||
        !std::ranges::all_of(programs[s]->outputs, knows_consumers) ||
        !std::ranges::all_of(programs[s]->inputs, knows_maker)) {
      return fmt::format(
          "{} has another program for stage {} than its list", name, share.list->stages[s].value);
    }
  }
  for (const Instruction& i : share.list->instructions) {
    const bool of_chunks = i.op == Op::Run || i.op == Op::Accumulate || is_exchange(i);
    const auto stage = std::ranges::lower_bound(share.list->stages, i.task.stage);
    if (of_chunks &&
        i.chunks.end() >
            std::ssize(
                programs[static_cast<std::size_t>(stage - share.list->stages.begin())]->chunks)) {
      return fmt::format("{}, {}: its stage has no such chunks", name, to_string(i));
    }
  }
  return {};
}

void check(const PlanShare& share, const StagePrograms& programs) {
  const std::string name = peer_name(share.rank.rank);
  std::vector<std::string> faults = verify(*share.list, *share.tables, name);
  if (faults.empty() && share.rank.peers.size() != static_cast<std::size_t>(share.list->peers)) {
    faults.push_back(name + " has other peers than its list");
  }
  if (faults.empty()) {
    if (std::string fault = fault_in(share, programs); !fault.empty()) {
      faults.push_back(std::move(fault));
    }
  }
  if (!faults.empty()) {
    throw Error(Errc::PlanInvalid,
                fmt::format("the plan breaks its rules: {}", fmt::join(faults, "; ")));
  }
}

/// Checks the order of the tasks of a stage and microbatch: a forward, then a whole backward, or
/// the input half before the weight half, each once; each from chunk to chunk. A weight half
/// without the other does all.
class Turns {
 public:
  /// Returns whether the task may come now.
  bool take(const Task& task, const ChunkRange& chunks, std::int32_t of) {
    Done& done = done_[{task.stage, task.microbatch}];
    std::int32_t& next = done.chunks[static_cast<std::size_t>(task.kind)];  // how many have run
    const bool first = next == 0;
    const bool forward = task.kind == CellKind::Forward;
    const bool in_turn = (forward ? chunks.first == next : chunks.end() == of - next) &&
                         may_begin(done, task.kind, first, of);
    next += chunks.count;
    return in_turn && next <= of;
  }

  [[nodiscard]] bool input_half_is_done(const Task& task) const {
    const auto done = done_.find({task.stage, task.microbatch});
    return done != done_.end() && count(done->second, CellKind::BackwardInput) > 0;
  }

 private:
  struct Done {
    std::array<std::int32_t, 8> chunks{};  // by kind
  };
  [[nodiscard]] static std::int32_t count(const Done& done, CellKind kind) {
    return done.chunks[static_cast<std::size_t>(kind)];
  }

  /// Returns whether a task of this kind may run after those that are done.
  [[nodiscard]] static bool may_begin(const Done& done,
                                      CellKind kind,
                                      bool first,
                                      std::int32_t chunks) {
    const std::int32_t input = count(done, CellKind::BackwardInput);
    const std::int32_t weight = count(done, CellKind::BackwardWeight);
    const std::int32_t whole = count(done, CellKind::Backward);
    switch (kind) {
      case CellKind::Forward:
        return input == 0 && weight == 0 && whole == 0;
      case CellKind::Backward:
        return input == 0 && weight == 0;
      case CellKind::BackwardInput:
        return weight == 0 && whole == 0;
      default:
        return whole == 0 && (!first || input == 0 || input == chunks);
    }
  }

  std::map<std::pair<StageId, Microbatch>, Done> done_;
};

/// Returns whether a device needs the wait of `later` for `earlier`. A stream keeps its order. Each
/// value of a slot has memory of its own, which the allocator keeps as long as a stream uses it, so
/// a Free orders nothing. A stream that waited for the end of a send would even wait for the
/// receiver, which P-10 does not know of.
bool orders_work(const Instruction& later, const Instruction& earlier) {
  return later.stream != earlier.stream && later.op != Op::Free && earlier.op != Op::Free;
}

/// Returns whether the stage's buckets get the parameter gradients of the task at `position` before
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

bool is_of_a_stage(const Instruction& i) {
  return i.op == Op::Run || i.op == Op::Accumulate || i.op == Op::Update || is_exchange(i);
}

/// Returns the position of a bucket among those of the stage.
std::size_t bucket_of_stage(const PlanTables& tables, StageId stage, std::int32_t bucket) {
  std::size_t position = 0;
  for (std::int32_t b = 0; b < bucket; ++b) {
    const std::vector<StageId>& stages = tables.buckets[static_cast<std::size_t>(b)].stages;
    position += std::ranges::find(stages, stage) == stages.end() ? 0 : 1;
  }
  return position;
}

class Binder {
 public:
  Binder(const PlanShare& share, const StagePrograms& programs) : share_(share) {
    check(share, programs);  // keeps BP-1
    for (std::size_t s = 0; s < programs.size(); ++s) {
      stages_.emplace_back(share, s, *programs[s]);
    }
    bound_.share = &share;
    bound_.list.reserve(share.list->instructions.size());
    position_of_.resize(share.list->instructions.size());
  }

  BoundPlan run() {
    for (const Instruction& i : share_.list->instructions) {
      bind(i);
    }
    for (std::size_t i = 0; i < bound_.list.size(); ++i) {
      BoundInstruction& b = bound_.list[i];
      b.is_accumulated_next =
          b.parameter_gradients.value >= 0 && is_accumulated_next(bound_.list, i);
      b.keeps_graphs = b.instruction->op == Op::Run && stages_[b.stage].has_backward;
    }
    return std::move(bound_);
  }

 private:
  void bind(const Instruction& i) {
    const std::size_t position = bound_.list.size();
    BoundInstruction b{.instruction = &i};
    for (const InstructionId id : i.waits) {
      const std::size_t earlier = position_of_[id.index()];
      if (orders_work(i, *bound_.list[earlier].instruction)) {
        b.waits.push_back(earlier);
        bound_.list[earlier].is_waited_for = true;
      }
    }
    if (is_of_a_stage(i)) {
      b.stage =
          static_cast<std::size_t>(std::ranges::lower_bound(share_.list->stages, i.task.stage) -
                                   share_.list->stages.begin());
    }
    if (i.op == Op::Run || i.op == Op::Accumulate || is_exchange(i)) {
      b.microbatch = in_step_of(share_.rank, i.task.microbatch, share_.stage(b.stage).size);
    }
    if (is_exchange(i)) {
      b.exchanged = exchanged_microbatches(*share_.tables, share_.rank.rank, i);
    }
    if (is_transfer(i.op)) {
      b.peer = share_.rank.peers[i.peer.index()];
      b.tagged = tagged_microbatch(*share_.tables, share_.rank, i);
    }
    if (i.op == Op::Run) {
      bind_run(b, i);
    } else if (i.op == Op::Regroup) {
      b.microbatch = in_step_of(
          share_.rank, i.task.microbatch, share_.tables->stages[i.task.stage.index()].size);
      for (const SlotUse& use : i.reads) {
        b.inputs.push_back(use.slot);
      }
      b.slot = i.writes.front().slot;
    } else if (i.op == Op::Update) {
      b.bucket = bucket_of_stage(*share_.tables, i.task.stage, i.bucket);
    } else if (i.reads.size() + i.writes.size() == 1) {
      b.slot = (i.reads.empty() ? i.writes : i.reads).front().slot;
    }
    if (i.op == Op::Recv) {
      bound_.receives.push_back(position);
    }
    position_of_[i.id.index()] = position;
    bound_.list.push_back(std::move(b));
  }

  void bind_run(BoundInstruction& b, const Instruction& i) {
    const ListedStage& stage = stages_[b.stage];
    const TaskSlots slots(share_, i, stage);
    if (i.task.kind == CellKind::Forward) {
      slots.bind_forward(b);
    } else {
      const bool rest =
          i.task.kind == CellKind::BackwardWeight && turns_.input_half_is_done(i.task);
      slots.bind_backward(b, rest);
      stages_[b.stage].has_backward |= !i.does_nothing();
    }
    if (!i.does_nothing() && !turns_.take(i.task, i.chunks, stage.chunks)) {
      slots.refuse("is out of order: a task goes from chunk to chunk, and I comes before W");
    }
  }

  const PlanShare& share_;
  std::vector<ListedStage> stages_;
  BoundPlan bound_;
  std::vector<std::size_t> position_of_;  // by id
  Turns turns_;
};

}  // namespace

BoundPlan bind_plan(const PlanShare& share, const StagePrograms& programs) {
  return Binder(share, programs).run();
}

}  // namespace stagecraft
