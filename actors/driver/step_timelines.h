/// StepTimelines holds the timelines of one step. They come to the driver over the data plane,
/// apart from the reports that announce them.
///
/// The driver makes one for each step; it has no actor and no clock. A rank announces at most one
/// timeline. The timeline of a rank that has ended may never come.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/device/timeline.h"
#include "stagecraft/base/ids.h"
#include "stagecraft/futures/future.h"

namespace stagecraft {

class StepTimelines {
 public:
  explicit StepTimelines(int ranks) : expected_(static_cast<std::size_t>(ranks)) {}

  /// Announces a timeline of `rows` instructions from a rank.
  void expect(Rank rank, std::int64_t rows, Future<at::Tensor> arrival);
  /// Returns the ranks whose timelines have not arrived yet.
  [[nodiscard]] std::vector<Rank> missing() const;

  /// Returns the timelines by rank, in the driver's clock. A rank has an empty one if it sent none,
  /// or if it did not come in time.
  [[nodiscard]] std::vector<std::vector<InstructionTime>> arrived(
      const std::vector<std::int64_t>& clock_offsets) const;

 private:
  struct Expected {
    std::int64_t rows = 0;
    Future<at::Tensor> arrival;
  };
  std::vector<std::optional<Expected>> expected_;  ///< by rank
};

}  // namespace stagecraft
