/// TrainLlamaOptions says what `train_llama` measures.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "stagecraft/bench/peer.h"

namespace stagecraft::bench {

struct TrainLlamaOptions {
  bool processes = false;  ///< ranks are processes, except for the bill
  std::vector<std::string> measures{"ideal", "bill", "threads"};
  std::vector<std::string> models{"llama", "vit", "unet"};  ///< of the bill
  std::vector<std::int64_t> dims{256, 512};  ///< of the Llama; only the bill takes all
  std::vector<int> threads{1, 2};            ///< of a worker, of the bill
  int rounds = 3;                            ///< of the bill
  std::optional<Peer> peer;
  bool json = false;
};

/// Returns the options, or the help text if the arguments ask for it. Errors: UsageArgument, in a
/// sentence.
[[nodiscard]] std::variant<TrainLlamaOptions, std::string> parse_train_llama_options(
    const std::vector<std::string>& arguments);

}  // namespace stagecraft::bench
