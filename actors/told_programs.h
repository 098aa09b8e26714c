/// ToldPrograms: which programs and shapes the ranks of a trainer know, beyond those of their
/// setups.
///
/// Held by a Trainer, on its caller's thread.
/// KP-1: ranks get the order of a step only if they know its program and all its shapes.
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
    std::set<int> shapes;  ///< the numbers of its variants
  };

  /// `training`: the program of the ranks' setups, laid out by `layout`.
  ToldPrograms(Program training,
               std::shared_ptr<const Plan> plan,
               Schedule schedule,
               Layout layout);

  /// Returns the entry of the training program or of an evaluation. Tells the ranks of `crew` a
  /// program that is new, and the shapes of these parts that are new.
  /// Errors: PlanInvalid, CompileShape; those of a rank that cannot take it on.
  [[nodiscard]] const Told& told(Crew& crew, const Program& program, const Parts& parts);

  /// Returns the plan of an order. Requires: the ranks were told of it.
  [[nodiscard]] const Plan& plan(std::int32_t number) const;

  [[nodiscard]] const Layout& layout() const { return layout_; }

 private:
  [[nodiscard]] Told& known(Crew& crew, const Program& program);

  const Schedule schedule_;
  const Layout layout_;
  std::deque<Told> programs_;  ///< the training program, then the others in order of first use
};

}  // namespace stagecraft
