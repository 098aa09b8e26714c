#include "stagecraft/actors/launch/ways/ways.h"

#include <algorithm>
#include <array>

#include "stagecraft/actors/launch/ways/here.h"
#include "stagecraft/actors/launch/ways/joining.h"
#include "stagecraft/actors/launch/ways/slurm.h"
#include "stagecraft/actors/launch/ways/ssh.h"

namespace stagecraft {

std::span<const WayRow> all_ways() {
  static const std::array<WayRow, 4> rows{{
      {.name = "slurm",
       .fits =
           [](const SpawnOptions& o) {
             return o.workers_come && o.workers_coming >= 0 && slurm_step().has_value();
           },
       .make = workers_of_slurm,
       .batch_system = &kSlurm},
      {.name = "joining",
       .fits = [](const SpawnOptions& o) { return o.workers_come; },
       .make = workers_that_join},
      {.name = "ssh",
       .fits = [](const SpawnOptions& o) { return !o.hosts.empty(); },
       .make = workers_by_ssh},
      {.name = "here", .fits = [](const SpawnOptions&) { return true; }, .make = workers_here},
  }};
  return rows;
}

std::unique_ptr<const WorkerWay> way_of(const SpawnOptions& options) {
  const auto row =
      std::ranges::find_if(all_ways(), [&](const WayRow& one) { return one.fits(options); });
  return row->make(options);
}

std::optional<BatchStep> batch_step() {
  for (const WayRow& row : all_ways()) {
    if (row.batch_system != nullptr) {
      if (auto step = row.batch_system->step()) {
        return step;
      }
    }
  }
  return std::nullopt;
}

}  // namespace stagecraft
