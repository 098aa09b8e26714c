/// LoadedPlan is one bound instruction list of a rank, with the slots and transfers of a step that
/// runs it.
///
/// The executor has one for each of its programs.
#pragma once

#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "stagecraft/actors/executor/device/device.h"
#include "stagecraft/actors/executor/run/slots.h"
#include "stagecraft/actors/executor/run/transfers.h"
#include "stagecraft/actors/executor/setup/bound_plan.h"

namespace stagecraft {

struct LoadedPlan {
  BoundPlan bound;
  Slots slots;
  Transfers transfers;
  std::vector<Device::Event> events;  ///< by position, for instructions that others wait for
  bool has_run = false;               ///< at least once to its end

  /// Views both arguments.
  LoadedPlan(const PlanShare& share,
             const StagePrograms& programs,
             std::shared_ptr<Transport> transport,
             std::shared_ptr<WaitBoard> board,
             std::chrono::milliseconds patience)
      : bound(bind_plan(share, programs)),
        slots(share.list->slots),
        transfers(bound, std::move(transport), std::move(board), patience),
        events(share.list->instructions.size()) {}

  LoadedPlan(const LoadedPlan&) = delete;  // transfers view the plan
  LoadedPlan& operator=(const LoadedPlan&) = delete;

  void clear() {
    slots.clear();
    transfers.clear();
  }
};

}  // namespace stagecraft
