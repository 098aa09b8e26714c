/// KnownPrograms records the programs and shapes that were sent to a trainer's ranks after their
/// setups.
///
/// A Trainer holds it, on its caller's thread.
/// KP-1: a step is ordered only after its ranks have the program and all shapes.
/// KP-2: an evaluation has the trainer's current values of the parameters and buffers that no stage
///       trains (EV-3).
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <vector>

#include "stagecraft/actors/crew/crew.h"
#include "stagecraft/compiler/plan/plan.h"
#include "stagecraft/compiler/program/chunk_borders.h"
#include "stagecraft/compiler/program/program.h"
#include "stagecraft/compiler/shapes/parts.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/scheduler/strategy/strategy.h"

namespace stagecraft {

class KnownPrograms {
 public:
  struct Sent {
    std::int32_t number = 0;  ///< StepOrder::program
    Program program;
    std::shared_ptr<const Plan> plan;
    std::set<int> shapes;                    ///< numbers of its shapes
    std::vector<ChunkBorders> borders = {};  ///< of an evaluation's chunks on the ranks, by stage
    bool has_unused = false;  ///< some constants are parameters or buffers that no stage trains
    bool up_to_date = true;   ///< these constants have the trainer's current values
  };

  /// `training`: the program of the ranks' setups. Evaluations are distributed by `strategy` too,
  /// on the stages of `layout`, in chunks that use weights as the groups of `plan` split them.
  KnownPrograms(Program training,
                std::shared_ptr<const Plan> plan,
                Strategy strategy,
                Layout layout);

  /// Returns the training program or an evaluation. If it or a shape of these parts is new, sends
  /// it to the ranks of `crew` first. `unused`: the parameters and buffers that no stage has.
  /// Errors: PlanInvalid, CompileShape; those of a rank that cannot take it on.
  [[nodiscard]] const Sent& sent(Crew& crew,
                                 const Program& program,
                                 const Parts& parts,
                                 const std::vector<StateTensor>& unused);

  /// Records that the parameters and buffers that no stage has were changed. Evaluations that use
  /// them are sent again.
  void unused_changed();

  /// Returns the plan of an order. Requires: it was sent to the ranks.
  [[nodiscard]] const Plan& plan(std::int32_t number) const;

  [[nodiscard]] const Layout& layout() const { return layout_; }

 private:
  [[nodiscard]] Sent& known(Crew& crew,
                            const Program& program,
                            const std::vector<StateTensor>& unused);
  void send(Crew& crew, Sent& evaluation, const std::vector<StateTensor>& unused) const;

  const Strategy strategy_;
  const Layout layout_;
  std::deque<Sent> programs_;  ///< the training program, then the others in order of first use
};

}  // namespace stagecraft
