/// RankPrograms holds the programs that a rank knows, each with its list and with its stages for
/// every shape of microbatches that the rank got.
///
/// The executor owns it and uses it on its plan thread. It begins with the program that trains.
/// Evaluations and further shapes are added between two steps.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "stagecraft/actors/executor/run/loaded_program.h"
#include "stagecraft/actors/executor/setup/rank_setup.h"
#include "stagecraft/actors/executor/setup/rank_shape.h"
#include "stagecraft/futures/transport/transport.h"
#include "stagecraft/futures/wait_board.h"

namespace stagecraft {

class RankPrograms {
 public:
  /// Loads the program that trains; its weights are zero. Views the setup.
  /// Errors: PlanInvalid for a list that breaks its rules (BP-1).
  /// `place`: the device of all tensors.
  RankPrograms(const RankSetup& setup,
               const c10::Device& place,
               std::shared_ptr<Transport> transport,
               std::shared_ptr<WaitBoard> board);
  RankPrograms(const RankPrograms&) = delete;  // runtimes view the stages
  RankPrograms& operator=(const RankPrograms&) = delete;

  /// Adds the stages for another shape or an evaluation, and replaces those that have its numbers.
  /// Requires: no step is in progress.
  /// Errors: PlanInvalid for stages or a list that do not fit this rank's.
  void add(RankShape given);

  /// Returns whether the rank knows the program for microbatches of this shape.
  [[nodiscard]] bool knows(std::int32_t program, std::int32_t shape) const;

  /// Returns the program. Requires: the rank knows it.
  [[nodiscard]] LoadedProgram& at(std::int32_t program) { return programs_.at(program); }

  /// Returns the stages of the program that trains, ascending. They hold the rank's state.
  [[nodiscard]] std::vector<StageRuntime>& trained() { return trained_; }
  [[nodiscard]] const std::vector<StageRuntime>& trained() const { return trained_; }

 private:
  /// Misfit returns the reason why a stage cannot run in the place of another; empty if it can.
  using Misfit = std::string (*)(const StageProgram& of, const StageProgram& given);

  [[nodiscard]] std::unique_ptr<LoadedPlan> load(const PlanShare& share,
                                                 const StagePrograms& programs) const;
  [[nodiscard]] std::vector<StageRuntime>& add_training();
  void require_gathered(const PlanTables& evaluation, const StagePrograms& stages) const;
  void add_evaluation(RankShape given);
  void add_shape(LoadedProgram& to, RankShape given, Misfit reason) const;
  [[noreturn]] void refuse(const std::string& what) const;

  const RankSetup& setup_;
  const c10::Device place_;
  const std::shared_ptr<Transport> transport_;
  const std::shared_ptr<WaitBoard> board_;
  std::map<std::int32_t, LoadedProgram> programs_;
  std::vector<StageRuntime>& trained_;  // last: adds to the programs
};

}  // namespace stagecraft
