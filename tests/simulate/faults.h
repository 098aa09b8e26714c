/// Faults are what strikes a simulated cluster. A run's faults are drawn from its seed before it
/// begins, so that fewer of them can strike the same run.
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <string_view>
#include <vector>

#include "stagecraft/base/clock.h"
#include "stagecraft/base/ids.h"
#include "stagecraft/tests/simulate/cluster.h"
#include "stagecraft/tests/simulate/driver_disk.h"
#include "stagecraft/tests/simulate/random.h"

namespace stagecraft::simulation {

struct Fault {
  enum class Kind {
    Kill,          ///< the rank's process ends
    Stop,          ///< it does nothing for the span; others give it up after Network::kSilence
    Hold,          ///< what the two ranks send each other takes longer by the span
    BreakControl,  ///< the rank's connection with the driver breaks
    BreakData,     ///< the way of tensors from `rank` to `other` breaks
    Part,          ///< nothing gets from or to a set of ranks for the span
    StopDriver,    ///< as Stop
    KillDriver,    ///< the driver ends; another one begins with the newest checkpoint
    Refuse,        ///< an instruction of the rank, or something else, gets no memory
    Slow,          ///< instructions of the rank that begin in the span take up to kSlowest longer
    Stranger,      ///< a process says what it may not, to the driver
    EndMachine,    ///< the driver ends, and its disk keeps what POSIX permits
    FillDisk,      ///< the driver's disk has no room for the span
    FailDisk,      ///< one of its operations fails
    SlowDisk,      ///< one of its operations takes the span
    Jump,          ///< the clock of the rank, or of the driver, jumps ahead by the span
  };
  static constexpr std::size_t kKinds = 16;

  std::int64_t step = -1;  ///< strikes when the run goes on after this step; -1: begins
  std::int64_t after = 0;  ///< and then so many things have happened
  Kind kind = Kind::Kill;
  Rank rank, other;           ///< `other`: of Kill, Hold, BreakData; either may be the driver
  std::vector<Plane> planes;  ///< of Hold
  int tensors = 0;  ///< of Kill: strikes when so many more are sent to `other`; 0: at once
  Refusal refusal;  ///< of Refuse
  Clock::Time::duration span{0};
  bool with_clock = false;  ///< of Stop, StopDriver: the clock stands still, too
  /// Strikes before the operation of the driver's disk with this number, from then on; 0: at once.
  int operation = 0;
  bool counts_writes = false;                                  ///< that number
  tests::DiskFault::Kind disk = tests::DiskFault::Kind::Fail;  ///< of FailDisk
  std::set<Rank> parted;                                       ///< of Part
  bool blocks_out = true, blocks_in = true;                    ///< of Part
};

/// Counts faults by their kinds.
using FaultCounts = std::array<std::int64_t, Fault::kKinds>;

/// Returns "kill", "break-data".
[[nodiscard]] std::string_view name_of(Fault::Kind kind);

/// Draws `count` faults for a run of so many steps.
[[nodiscard]] std::vector<Fault> draw_faults(Random& random,
                                             int count,
                                             int ranks,
                                             std::int64_t steps);

/// Lets the clocks of half of the processes that are stopped stand still. Adds a Jump soon after a
/// third of the faults.
void strike_clocks(Random& random, int ranks, std::vector<Fault>& faults);

/// Adds a KillDriver soon after a quarter of the faults.
void kill_drivers(Random& random, std::vector<Fault>& faults);

/// Returns whether it strikes: not a process that has ended.
bool strike(const Fault& fault, Processes& processes, DriverDisk& disk);

}  // namespace stagecraft::simulation
