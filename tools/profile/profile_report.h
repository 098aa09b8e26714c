/// profile_report writes the output of `stagecraft profile`: a table for people, or one JSON
/// object.
#pragma once

#include <string>

#include "stagecraft/actors/profile/profile.h"

namespace stagecraft::tools {

/// ProfileSums holds the sums over all operators, for one size of microbatch. Units: seconds and
/// bytes.
struct ProfileSums {
  int samples = 1;
  double forward = 0;
  double backward_input = 0;
  double backward_weight = 0;
  double sums = 0;  ///< part of the two above
  double kept = 0;

  [[nodiscard]] double backward() const { return backward_input + backward_weight; }
};
[[nodiscard]] ProfileSums sums_of(const std::vector<OperatorCost>& operators, int samples);

/// Return the largest operators, the sums of every size, parameters, transfers and noise. `ranks`:
/// the kind of ranks between which transfers were measured.
[[nodiscard]] std::string to_text(const std::string& model,
                                  const Profile& profile,
                                  RankHomes ranks);
[[nodiscard]] std::string to_json(const std::string& model,
                                  const Profile& profile,
                                  RankHomes ranks);

}  // namespace stagecraft::tools
