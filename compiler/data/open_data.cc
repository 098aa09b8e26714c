#include "stagecraft/compiler/data/open_data.h"

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/data/folder_names.h"
#include "stagecraft/compiler/data/microbatch_files.h"
#include "stagecraft/compiler/data/shard_folder.h"

namespace stagecraft {
namespace {

/// Returns whether only a shard has this name. Other files may be among microbatches.
bool names_shard(const std::string& name) {
  return name.ends_with(".bin") || (name.ends_with(".npy") && !MicrobatchFiles::may_name(name) &&
                                    name.find("_arg") != name.npos);
}

}  // namespace

std::unique_ptr<ModelData> open_data(const std::string& folder, const DataRequest& request) {
  const std::vector<std::string> names = names_in_folder(folder);
  const auto step = std::ranges::find_if(names, MicrobatchFiles::may_name);
  if (step == names.end()) {
    return std::make_unique<ShardFolder>(folder, request);
  }
  if (const auto shard = std::ranges::find_if(names, names_shard); shard != names.end()) {
    throw Error(Errc::UsageFile,
                fmt::format("{}: expected data of one form: {}; found {} and {}",
                            folder,
                            kDataForms,
                            *step,
                            *shard));
  }
  if (request.held_out > 0.0 || request.part == DataPart::HeldOut) {
    throw Error(Errc::UsageFile,
                fmt::format("{}: only of shards of samples can a part be held out, found whole "
                            "microbatches, {}",
                            folder,
                            *step));
  }
  return std::make_unique<MicrobatchFiles>(folder, request.seed.value_or(0));
}

}  // namespace stagecraft
