/// run trains in a simulated cluster under faults, in a shape that its seed draws (shape.h), and
/// checks what is promised:
///
/// SI-1: every step that succeeds, and every state that is recovered, loaded or saved, has the bits
///       of the unbroken run.
/// SI-2: recovery goes back at most one step, or two if a copy was late (MI-2). After a step,
///       mirrors have a whole state unless a rank was lost with the keeper of its copies. Whole
///       copies of stages have one at any time, unless all copies of a stage were lost, or those
///       that are left have made different numbers of updates.
/// SI-3: a worker that is said to be lost has ended, or the driver has lost the connection with it,
///       for the cause that is told.
/// SI-4: every wait ends, within 2 s after the last fault that disturbs it. A run gets on after all
///       failures, and nothing is left to wait for.
/// SI-5: at the end no worker is left, also none that the driver had given up, and no tensor that
///       nobody receives.
/// SI-6: nothing fails without a fault.
/// SI-7: a driver that follows one that was killed goes on from the newest whole checkpoint of its
///       folder, with new workers.
///       If the workers outlived it (MR-4), it goes on from their state, if that is newer: at most
///       as far back as SI-2 says, unless a rank was lost with the keeper of its copies.
/// SI-8: a process that may not join is given no place, and what it says changes nothing.
/// SI-9: no file is broken that has its name, and none is lost that was said to be saved, also
///       after the end of the driver's machine (CK-1, CS-5, CS-6). The newest is found (CK-3).
/// SI-10: a save fails only by a fault of the disk, with an error that names the file. The older
///        checkpoints that were asked for stay, and training goes on (CS-1, CS-2, CS-3).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stagecraft/tests/simulate/faults.h"

namespace stagecraft::simulation {

struct RunOptions {
  int ranks = 2;         ///< at least 2
  std::string way;       ///< to train (shape.h); empty: the seed draws it
  bool outlive = false;  ///< workers outlive their drivers wherever ranks have mirrors
  std::int64_t steps = 6;
  std::optional<int> faults;  ///< empty: the seed draws it
};

struct RunResult {
  std::string violation;  ///< empty: all promises were kept
  std::string story;
  FaultCounts faults{};  ///< that struck
  int recoveries = 0;
  std::int64_t events = 0;
  bool is_stuck = false;  ///< threads wait for ever, so this process can make no other run
};

/// Returns the faults of this seed.
[[nodiscard]] std::vector<Fault> faults_of(std::uint64_t seed, const RunOptions& options);

[[nodiscard]] RunResult run(std::uint64_t seed,
                            const RunOptions& options,
                            const std::vector<Fault>& faults);

/// Runs the seed with fewer faults, as long as a promise is broken and no run is stuck. Returns the
/// last result that broke one. `broken`: that with all faults.
[[nodiscard]] RunResult shortened(std::uint64_t seed, const RunOptions& options, RunResult broken);

}  // namespace stagecraft::simulation
