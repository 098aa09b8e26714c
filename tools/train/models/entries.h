/// The lines of the registry (models.h), each in the file of its model, and what they share.
#pragma once

#include "stagecraft/tools/train/models.h"

namespace stagecraft::tools {

[[nodiscard]] ModelEntry llama_entry();

/// For ModelEntry::wrong: heads divide the width; each of an even width, where a rotary embedding
/// turns pairs.
[[nodiscard]] std::string wrong_heads(const ModelSizes& sizes);
[[nodiscard]] std::string wrong_heads_of_rotated_pairs(const ModelSizes& sizes);

}  // namespace stagecraft::tools
