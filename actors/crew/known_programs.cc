#include "stagecraft/actors/crew/known_programs.h"

#include <algorithm>
#include <string>
#include <utility>

#include "stagecraft/actors/executor/optimizer/state_names.h"
#include "stagecraft/base/check.h"
#include "stagecraft/compiler/lower/lower.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/program/evaluation_chunks.h"

namespace stagecraft {
namespace {

// A program with new metrics in every evaluation drops the one that was used longest ago.
constexpr std::size_t kMostPrograms = 9;

/// Puts the trainer's values into the stages' constants (keeps KP-2). Returns whether there were
/// any.
bool give(std::vector<StageProgram>& stages,
          const Graph& graph,
          const std::vector<StateTensor>& unused) {
  bool any = false;
  for (StageProgram& stage : stages) {
    for (StageConstant& constant : stage.constants) {
      const Value& facts = stage.at(constant.value);
      if (facts.kind == ValueKind::Constant) {
        continue;
      }
      const bool buffer = facts.kind == ValueKind::Buffer;
      const std::vector<NamedTensor>& all = buffer ? graph.buffers : graph.parameters;
      const std::string name = state_name(buffer ? kBuffer : kWeight,
                                          all[static_cast<std::size_t>(facts.position)].name);
      const auto found = std::ranges::find(unused, name, &StateTensor::name);
      SC_CHECK(found != unused.end(),
               "the trainer has every parameter and buffer that no stage has");
      constant.tensor = found->tensor;
      any = true;
    }
  }
  return any;
}

}  // namespace

KnownPrograms::KnownPrograms(Program training,
                             std::shared_ptr<const Plan> plan,
                             Strategy strategy,
                             Layout layout)
    : strategy_(std::move(strategy)), layout_(std::move(layout)) {
  programs_.push_back({kTraining, std::move(training), std::move(plan), {}});
}

const KnownPrograms::Sent& KnownPrograms::sent(Crew& crew,
                                               const Program& program,
                                               const Parts& parts,
                                               const std::vector<StateTensor>& unused) {
  Sent& found = known(crew, program, unused);
  for (const std::shared_ptr<const OtherShape>& shape : parts.shapes) {
    if (shape != nullptr && !found.shapes.contains(shape->number)) {
      auto stages = std::make_shared<std::vector<StageProgram>>(shape->stages);
      for (std::size_t s = 0; s < found.borders.size(); ++s) {
        cut_as_first((*stages)[s], found.borders[s]);
      }
      give(*stages, program.compiled().graph, unused);
      crew.add_shape(std::make_shared<const JobShape>(JobShape{.program = found.number,
                                                               .number = shape->number,
                                                               .random = shape->random,
                                                               .stages = std::move(stages),
                                                               .plan = nullptr}));
      found.shapes.insert(shape->number);
    }
  }
  return found;
}

void KnownPrograms::unused_changed() {
  for (Sent& sent : programs_) {
    sent.up_to_date = !sent.has_unused;
  }
}

KnownPrograms::Sent& KnownPrograms::known(Crew& crew,
                                          const Program& program,
                                          const std::vector<StateTensor>& unused) {
  const auto begin = programs_.begin() + 1;
  const auto is_it = [&](const Sent& sent) { return sent.program.shared() == program.shared(); };
  if (program.compiled().evaluates == nullptr) {
    return programs_.front();
  }
  if (const auto found = std::find_if(begin, programs_.end(), is_it); found != programs_.end()) {
    std::rotate(found, found + 1, programs_.end());
    Sent& last = programs_.back();
    if (!last.up_to_date) {
      send(crew, last, unused);
    }
    return last;
  }
  Sent added{.number = static_cast<std::int32_t>(programs_.size()),
             .program = program,
             .plan = nullptr,
             .shapes = {}};
  const bool full = programs_.size() == kMostPrograms;
  if (full) {
    added.number = begin->number;
  }
  send(crew, added, unused);
  if (full) {
    programs_.erase(begin);
  }
  programs_.push_back(std::move(added));
  return programs_.back();
}

/// Sends the evaluation's first shape. The others are sent when they are needed.
void KnownPrograms::send(Crew& crew,
                         Sent& evaluation,
                         const std::vector<StateTensor>& unused) const {
  const Sent& training = programs_.front();
  const Program in_chunks =
      evaluation_in_chunks(evaluation.program, training.program, training.plan->tables);
  const CompiledProgram& compiled = in_chunks.compiled();
  auto plan = std::make_shared<const Plan>(
      lower(in_chunks, strategy_, layout_, /*training=*/false, training.plan.get()).plan);
  auto stages = std::make_shared<std::vector<StageProgram>>(compiled.partition.stages);
  evaluation.has_unused = give(*stages, compiled.graph, unused);
  crew.add_shape(std::make_shared<const JobShape>(JobShape{.program = evaluation.number,
                                                           .number = 0,
                                                           .random = 0,
                                                           .stages = std::move(stages),
                                                           .plan = plan}));
  evaluation.plan = std::move(plan);
  evaluation.borders = compiled.chunk_borders;
  evaluation.shapes.clear();
  evaluation.up_to_date = true;
}

const Plan& KnownPrograms::plan(std::int32_t number) const {
  const auto found = std::ranges::find(programs_, number, &Sent::number);
  SC_CHECK(found != programs_.end(),
           "a program is sent to the ranks before a step of it is ordered");
  return *found->plan;
}

}  // namespace stagecraft
