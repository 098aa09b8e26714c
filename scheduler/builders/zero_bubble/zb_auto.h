/// ZB-auto makes a zero-bubble schedule for given costs and memory.
///
/// It runs the devices forward in time. A free device takes an available backward input. Otherwise
/// it takes a forward, unless that would delay a backward input that is known to come. Otherwise it
/// takes a weight half that fits the wait. Three of these decisions can go either way. The builder
/// tries all eight combinations, and the lists of ZB-H1 and ZB-H2 if they fit the memory. The
/// schedule whose longest device is shortest wins. A cap of P activations gives a schedule like
/// ZB-H1, a cap of 2 P - 1 one like ZB-H2.
///
/// ZA-1: microbatches of each kind keep their order on every device, so gradients add up in order.
/// ZA-2: with a cap of at least 1 no device blocks: a device at its cap has a weight half to run,
///       or its oldest microbatch is further down the pipeline and comes back.
/// Source: Qi et al., "Zero Bubble Pipeline Parallelism" (ICLR 2024), section 3 and appendix, in
/// outline.
#pragma once

#include <vector>

#include "stagecraft/scheduler/costs/costs.h"
#include "stagecraft/scheduler/model/schedule.h"

namespace stagecraft {

struct ZbAutoOptions {
  Costs costs;           ///< of forwards, halves of backwards, and transfers between neighbors
  std::vector<int> cap;  ///< most activations in flight, by device; one for all; empty: P each
};

/// Returns the unit-time array, one stage per row.
/// Errors: ScheduleParameter for a count below 1, a cap below 1, another number of caps than
/// devices, and times whose sum overflows.
/// Cost: linear in the cells, for each of the ten candidates.
[[nodiscard]] Schedule zb_auto(int ranks, int microbatches, const ZbAutoOptions& options = {});

}  // namespace stagecraft
