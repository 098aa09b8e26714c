#include "stagecraft/tools/train/run/rank_sums.h"

#include <algorithm>

#include <fmt/format.h>

namespace stagecraft::tools {
namespace {

double compute_seconds(const RankTimes& times) {
  return times.forward + times.backward + times.update;
}

}  // namespace

RankSums::RankSums(const Layout& layout, const std::vector<RankMemory>& bill)
    : totals_(static_cast<std::size_t>(layout.ranks())) {
  for (std::size_t rank = 0; rank < totals_.size(); ++rank) {
    std::string& stages = totals_[rank].stages;
    for (const StageId stage : layout.stages_of(Rank(rank))) {
      stages += fmt::format("{}{}", stages.empty() ? "" : ",", layout.model_stage(stage).value);
    }
    totals_[rank].memory_billed = rank < bill.size() ? bill[rank].in_step() : 0;
  }
}

void RankSums::add(const StepResult& result) {
  for (std::size_t rank = 0; rank < totals_.size(); ++rank) {
    const RankTimes& times = result.ranks[rank];
    RankTotals& total = totals_[rank];
    total.forward += times.forward;
    total.backward += times.backward;
    total.update += times.update;
    total.waiting += times.waiting;
    total.peak_bytes = std::max(total.peak_bytes, times.peak_bytes);
    total.memory_peak = std::max(total.memory_peak, times.memory.peak);
    total.memory_live = times.memory.live;
    total.memory_cached = times.memory.cached;
  }
}

std::vector<std::string> RankSums::stages() const {
  std::vector<std::string> stages;
  for (const RankTotals& rank : totals_) {
    stages.push_back(rank.stages);
  }
  return stages;
}

std::string RankSums::slowest(const StepResult& result) const {
  const auto slowest = std::ranges::max_element(result.ranks, {}, &compute_seconds);
  const std::string& stages =
      totals_[static_cast<std::size_t>(slowest - result.ranks.begin())].stages;
  return fmt::format("{} {}", stages.find(',') == std::string::npos ? "stage" : "stages", stages);
}

}  // namespace stagecraft::tools
