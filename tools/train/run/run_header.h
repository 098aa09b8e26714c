/// header_text says in a few lines what a run is going to do: model, schedule, batch, optimizer,
/// data and workers, and whether it saves nothing.
#pragma once

#include <cstdint>
#include <string>

#include "stagecraft/tools/train/job/job.h"

namespace stagecraft::tools {

/// Returns at most six lines. `rows`: samples of a batch.
[[nodiscard]] std::string header_text(const TrainJob& job, std::int64_t rows);

}  // namespace stagecraft::tools
