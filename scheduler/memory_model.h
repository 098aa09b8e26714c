/// MemoryModel: the bytes a row holds, so that a schedule can be refused before it runs out of them
/// (V30).
///
/// Measured by the runtime or stated by a user. A value; lists shorter than the stages count as
/// zero beyond. Units: bytes.
#pragma once

#include <vector>

namespace stagecraft {

struct MemoryModel {
  std::vector<double> fixed;        ///< by stage: weights, gradients, optimizer state
  std::vector<double> activations;  ///< by stage: kept from F to B, or to W when split
  std::vector<double> transient;    ///< by stage: only while one of its tasks runs
  double input_release = 0;         ///< share of the activation that I frees already
  double budget = 0;                ///< of each row
};

}  // namespace stagecraft
