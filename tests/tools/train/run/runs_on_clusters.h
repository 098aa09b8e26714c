/// Makes one run of `stagecraft train` on several clusters, in this process.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "stagecraft/actors/cluster/cluster.h"

namespace stagecraft::tests {

/// Holds what a run printed at its end.
struct Ending {
  nlohmann::json verified;
  std::string sha256;  ///< of the weights
};

/// Makes the run of these words, which have --json, once on each cluster, and REQUIREs that it ends
/// well. The clusters may serve many runs, because starting workers takes longer than training.
[[nodiscard]] std::vector<Ending> endings_on(const std::vector<Cluster>& clusters,
                                             const std::vector<std::string>& words);

/// Returns the options of the smallest Llama that fits two heads.
[[nodiscard]] std::vector<std::string> tiny_llama();

}  // namespace stagecraft::tests
