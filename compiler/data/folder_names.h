/// names_in_folder lists the files of a folder of data.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stagecraft {

/// The forms of a folder of data, for messages.
inline constexpr std::string_view kDataForms =
    "step<k>_mb<j>_arg<i>.npy (argument i of microbatch j of step k, from 0), or shards of "
    "samples, <shard>_arg<i>.npy, <shard>.safetensors or <shard>.bin of tokens";

/// Returns the names of the files, in order; hidden ones and folders are left out.
/// Errors: UsageFile for a folder that does not exist or cannot be read.
[[nodiscard]] std::vector<std::string> names_in_folder(const std::string& folder);

/// Returns "step0_mb0_arg0.npy and 3 more", for messages. Requires: there are names.
[[nodiscard]] std::string text_of_names(const std::vector<std::string>& names);

}  // namespace stagecraft
