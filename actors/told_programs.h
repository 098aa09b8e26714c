/// ToldPrograms: which programs and shapes the ranks of a trainer know, beyond their setups.
///
/// Held by a Trainer, on its caller's thread.
/// KP-1: a step is ordered of ranks that know its program and all its shapes.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <set>

#include "stagecraft/actors/crew.h"
#include "stagecraft/compiler/parts.h"
#include "stagecraft/compiler/plan/plan.h"
#include "stagecraft/compiler/program.h"
#include "stagecraft/scheduler/layout.h"
#include "stagecraft/scheduler/schedule.h"

namespace stagecraft {

class ToldPrograms {
 public:
  struct Told {
    std::int32_t number = 0;  ///< StepOrder::program
    Program program;
    std::shared_ptr<const Plan> plan;
    std::set<int> shapes;  ///< numbers of its variants
  };

  /// `training`: what the ranks have from their setups, laid out by `layout`.
  ToldPrograms(Program training,
               std::shared_ptr<const Plan> plan,
               Schedule schedule,
               Layout layout);

  /// The program that trains, or an evaluation, which the ranks of `crew` are told of where it is
  /// new, with the shapes of these parts.
  /// Errors: PlanInvalid, CompileShape; those of a rank that cannot take it on.
  [[nodiscard]] const Told& told(Crew& crew, const Program& program, const Parts& parts);

  /// The plan of an order. Requires: it was told.
  [[nodiscard]] const Plan& plan(std::int32_t number) const;

  [[nodiscard]] const Layout& layout() const { return layout_; }

 private:
  [[nodiscard]] Told& known(Crew& crew, const Program& program);

  const Schedule schedule_;
  const Layout layout_;
  std::deque<Told> programs_;  ///< the one that trains first; the others in the order of their use
};

}  // namespace stagecraft
