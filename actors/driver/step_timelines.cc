#include "stagecraft/actors/driver/step_timelines.h"

#include <utility>

#include "stagecraft/actors/messages/timeline_tensor.h"
#include "stagecraft/base/error.h"
#include "stagecraft/base/log.h"

namespace stagecraft {

void StepTimelines::expect(Rank rank, std::int64_t rows, Future<at::Tensor> arrival) {
  expected_.at(rank.index()) = Expected{.rows = rows, .arrival = std::move(arrival)};
}

std::vector<Rank> StepTimelines::missing() const {
  std::vector<Rank> ranks;
  for (std::size_t r = 0; r < expected_.size(); ++r) {
    if (expected_[r] && !expected_[r]->arrival.ready()) {
      ranks.emplace_back(r);
    }
  }
  return ranks;
}

std::vector<std::vector<InstructionTime>> StepTimelines::arrived(
    const std::vector<std::int64_t>& clock_offsets) const {
  std::vector<std::vector<InstructionTime>> timelines(expected_.size());
  for (std::size_t r = 0; r < expected_.size(); ++r) {
    const std::optional<Expected>& expected = expected_[r];
    if (!expected) {
      continue;
    }
    if (!expected->arrival.ready()) {
      log(Level::Warning, "timeline late", {{"rank", Rank(r)}});
      continue;
    }
    try {
      timelines[r] = unpack_timeline(expected->arrival.get(), expected->rows, clock_offsets[r]);
    } catch (const Error& error) {
      log(Level::Warning, "timeline missing", {{"rank", Rank(r)}, {"why", error.what()}});
    }
  }
  return timelines;
}

}  // namespace stagecraft
