/// open_data opens the data of a model from a file: the class of ModelData that fits the folder's
/// files.
#pragma once

#include <memory>
#include <string>

#include "stagecraft/compiler/data/data_request.h"
#include "stagecraft/compiler/data/model_data.h"

namespace stagecraft {

/// Returns MicrobatchFiles for a folder with files `step<k>_mb<j>_arg<i>.npy`, and ShardFolder for
/// any other. The first has its own microbatches, and takes only the seed of the request.
/// Errors: UsageFile for a folder with both, and if a part is to be held out of the first kind;
///         those of both classes.
[[nodiscard]] std::unique_ptr<ModelData> open_data(const std::string& folder,
                                                   const DataRequest& request);

}  // namespace stagecraft
