/// ways is the table of all ways in which worker processes come to a fleet, and of the batch
/// systems among them. A new way is one row.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "stagecraft/actors/launch/ways/batch_system.h"
#include "stagecraft/actors/launch/ways/spawn_options.h"
#include "stagecraft/actors/launch/ways/worker_way.h"

namespace stagecraft {

struct WayRow {
  std::string_view name;
  bool (*fits)(const SpawnOptions& options);
  std::unique_ptr<const WorkerWay> (*make)(const SpawnOptions& options);
  const BatchSystem* batch_system = nullptr;  ///< null: workers are no step of one
};

/// Returns all rows. The first one that fits the options decides.
[[nodiscard]] std::span<const WayRow> all_ways();

/// Returns the way that the options request. Errors: UsageFile if no worker program is found.
[[nodiscard]] std::unique_ptr<const WorkerWay> way_of(const SpawnOptions& options);

/// Returns the step of a batch system that this process is in, if any. Errors: UsageArgument for an
/// environment that makes no sense.
[[nodiscard]] std::optional<BatchStep> batch_step();

}  // namespace stagecraft
