/// token_shards finds samples in .bin files of tokens. A sample is a window of tokens. A model that
/// takes two arguments gets the same window one token later as the second, the targets.
///
/// A file is a row of uint16, little endian, as nanoGPT writes it; or it begins with the header of
/// llm.c, 256 int32: magic 20240520, version 1, the number of tokens, for uint16; magic 20240801,
/// version 7 for uint32. Windows follow each other, so that every token is in one; what does not
/// fill a window at the end of a file is left out.
///
/// Source: nanoGPT, data/openwebtext/prepare.py; llm.c, dev/data/data_common.py.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stagecraft/compiler/data/shards/shard.h"

namespace stagecraft {

/// Returns a shard for each file, in the order of `names`. `window`: tokens of a sample, from 1 on.
/// `arguments`: 1 for windows alone, 2 for their targets too.
/// Errors: UsageFile for a file that cannot be read, one that ends inside a token, and one with
///         another number of tokens than its header says or another version.
[[nodiscard]] std::vector<Shard> token_shards(const std::string& folder,
                                              const std::vector<std::string>& names,
                                              std::int64_t window,
                                              int arguments);

}  // namespace stagecraft
