/// TrainLlamaOptions: what `train_llama` was asked to measure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "stagecraft/bench/peer.h"

namespace stagecraft::bench {

struct TrainLlamaOptions {
  bool processes = false;  ///< ranks, of all but the bill
  std::vector<std::string> measures{"ideal", "bill", "threads"};
  std::vector<std::string> models{"llama", "vit", "unet"};  ///< of the bill
  std::vector<std::int64_t> dims{256, 512};  ///< of the Llama; of the first all but the bill
  std::vector<int> threads{1, 2};            ///< of a worker, of the bill
  int rounds = 3;                            ///< of the bill
  std::optional<Peer> peer;
  bool json = false;
};

/// Or the help, where that is asked for. Errors: UsageArgument, in a sentence.
[[nodiscard]] std::variant<TrainLlamaOptions, std::string> parse_train_llama_options(
    const std::vector<std::string>& arguments);

}  // namespace stagecraft::bench
