/// ProfileRequest holds the options of `stagecraft profile`. It is made once and never changed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "stagecraft/actors/profile/link_costs.h"
#include "stagecraft/scheduler/costs/noise_warning.h"
#include "stagecraft/tools/train/work/work.h"
#include "stagecraft/tools/train/work/work_request.h"

namespace stagecraft::tools {

struct ProfileRequest {
  WorkRequest work;
  std::vector<int> sizes;  ///< samples; empty: those of the data or 4
  Precision precision = Precision::Float32;
  std::int64_t threads = 1;  ///< inside one operator
  RankHomes ranks = RankHomes::Threads;
  std::optional<std::string> output;  ///< path of costs.json; "-": standard output
  bool fresh = false;
  double most_noise = 100 * kMostNoise;  ///< percent
  bool json = false;
};

/// ProfileHelp is the answer to `--help`.
struct ProfileHelp {
  std::string text;
};

/// Returns the request, or the help if it was requested.
/// Errors: UsageArgument, naming the option, the expected value and the found one.
[[nodiscard]] std::variant<ProfileRequest, ProfileHelp> parse_profile_options(
    const std::vector<std::string>& arguments);

}  // namespace stagecraft::tools
