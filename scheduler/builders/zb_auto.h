/// ZB-auto: a zero-bubble schedule made for given costs and memory.
///
/// Runs the devices forward in time. A free device takes the backward input that is there; else a
/// forward, unless it would hold up a backward input that is known to come; else a weight half that
/// fits the wait. Three of these judgements can go either way: all eight ways are tried, and so are
/// the lists of ZB-H1 and ZB-H2 where they fit the memory; the schedule whose longest device is
/// shortest wins. A cap of P activations gives a plan like ZB-H1, of 2 P - 1 one like ZB-H2.
///
/// ZA-1: microbatches keep their order on every device, of each kind, so gradients add up in order.
/// ZA-2: with a cap of at least 1 it cannot block: a device at its cap has a weight half to run, or
///       its oldest microbatch is further down the pipeline and comes back.
/// Source: Qi et al., "Zero Bubble Pipeline Parallelism" (ICLR 2024), section 3 and appendix, in
/// outline.
#pragma once

#include <vector>

#include "stagecraft/scheduler/costs.h"
#include "stagecraft/scheduler/schedule.h"

namespace stagecraft {

struct ZbAutoOptions {
  Costs costs;           ///< of forwards, halves of backwards, and transfers between neighbours
  std::vector<int> cap;  ///< most activations in flight, by device; one for all; empty: P each
};

/// Returns the unit-time array, one stage per row. Errors: ScheduleParameter for a count below 1, a
/// cap below 1, another number of caps than devices, and times that no number holds the sum of.
/// Cost: linear in the cells, for each of the ten candidates.
[[nodiscard]] Schedule zb_auto(int ranks, int microbatches, const ZbAutoOptions& options = {});

}  // namespace stagecraft
