/// exported_model reads an archive of torch.export as a ModelFile.
#pragma once

#include "stagecraft/compiler/import/archive/archive.h"
#include "stagecraft/compiler/import/model_file.h"

namespace stagecraft {

/// Returns whether the archive is one of torch.export.
[[nodiscard]] bool is_exported_model(const Archive& archive);

/// Reads the archive. Errors: those of load_model.
[[nodiscard]] ModelFile exported_model(Archive& archive);

}  // namespace stagecraft
