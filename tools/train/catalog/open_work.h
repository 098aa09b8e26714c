/// open_work opens the work of a request: a model of the catalog, or one from a file.
#pragma once

#include <memory>

#include "stagecraft/tools/train/work/work.h"
#include "stagecraft/tools/train/work/work_request.h"

namespace stagecraft::tools {

/// Opens it. `most`: bytes that it may take.
/// Errors: UsageFile for data that cannot be read; DeviceOutOfMemory for data that is too large;
///         for a model from a file, those of FileWork.
[[nodiscard]] std::unique_ptr<Work> open_work(const WorkRequest& request, double most);

}  // namespace stagecraft::tools
