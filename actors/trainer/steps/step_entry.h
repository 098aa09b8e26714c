/// StepEntry enters trained batches and evaluations into the ledger, which starts their steps.
///
/// A Trainer owns it and uses it on its caller's thread.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "stagecraft/actors/crew/crew.h"
#include "stagecraft/actors/crew/known_programs.h"
#include "stagecraft/actors/driver/step_ledger.h"
#include "stagecraft/actors/trainer/steps/kept_futures.h"
#include "stagecraft/actors/trainer/steps/step_future.h"
#include "stagecraft/compiler/libtorch/host_memory.h"
#include "stagecraft/compiler/program/program.h"
#include "stagecraft/compiler/shapes/parts.h"

namespace stagecraft {

class StepEntry {
 public:
  /// Views all references. `keeper`: of training steps. `unused`: the parameters and buffers that
  /// no stage has. `device`: of the ranks (TrainerOptions). `outstanding`: the most steps in
  /// progress. `seed`: of the random operators of the steps to come.
  StepEntry(Crew& crew,
            StepLedger& ledger,
            KnownPrograms& programs,
            StepKeeper keeper,
            const std::vector<StateTensor>& unused,
            std::string device,
            int outstanding,
            std::uint64_t seed)
      : crew_(crew),
        ledger_(ledger),
        programs_(programs),
        keeper_(std::move(keeper)),
        unused_(unused),
        device_(std::move(device)),
        outstanding_(outstanding),
        seed_(seed) {}

  [[nodiscard]] std::uint64_t seed() const { return seed_; }
  void set_seed(std::uint64_t seed) { seed_ = seed; }

  [[nodiscard]] const Layout& layout() const { return programs_.layout(); }

  /// Returns where the parts of batches are to lie.
  [[nodiscard]] HostMemory memory() const { return memory_for(device_); }

  /// Returns the program that the ranks have. Sends them the program and the shapes of these parts,
  /// if these are new (KP-1). Errors: those of KnownPrograms::sent.
  [[nodiscard]] const KnownPrograms::Sent& sent(const Program& program, const Parts& parts) {
    return programs_.sent(crew_, program, parts, unused_);
  }

  /// Returns the step of a batch. Takes the tensors out of `split`, the parts of the batch, and
  /// converts them to the form in which they cross to a rank. `scale`: of their weights.
  /// Errors: UsageArgument for microbatches of different sizes whose experts cannot be divided.
  [[nodiscard]] StepInput input(const KnownPrograms::Sent& sent,
                                Parts& split,
                                double scale = 1.0) const;

  /// Waits while too many steps are in progress, and enters another one.
  /// Errors: those of StepLedger::enter.
  [[nodiscard]] StepFuture enter(StepInput input);

 private:
  Crew& crew_;
  StepLedger& ledger_;
  KnownPrograms& programs_;
  const StepKeeper keeper_;
  const std::vector<StateTensor>& unused_;
  const std::string device_;
  const int outstanding_;
  std::uint64_t seed_;
};

}  // namespace stagecraft
