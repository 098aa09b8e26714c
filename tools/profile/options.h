/// ProfileRequest: the options of `stagecraft profile`. Made once, never changed.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "stagecraft/actors/profile/link_costs.h"
#include "stagecraft/scheduler/costs/noise_warning.h"
#include "stagecraft/tools/train/options/options.h"

namespace stagecraft::tools {

struct ProfileRequest {
  TrainOptions model;      ///< uncut, one microbatch of the largest size
  std::vector<int> sizes;  ///< samples; empty: those of the data
  RankHomes ranks = RankHomes::Threads;
  std::optional<std::string> output;  ///< path of costs.json; "-": standard output
  bool fresh = false;
  double most_noise = 100 * kMostNoise;  ///< percent
  bool json = false;
};

/// Returns the request, or the help if it was asked for.
/// Errors: UsageArgument, naming the option, what it expects and what was found.
[[nodiscard]] std::variant<ProfileRequest, HelpText> parse_profile_options(
    const std::vector<std::string>& arguments);

}  // namespace stagecraft::tools
