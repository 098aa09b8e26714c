#include "stagecraft/actors/executor/commit/tie_sum.h"

#include <algorithm>
#include <map>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include "stagecraft/base/check.h"

namespace stagecraft {
namespace {

/// Visits a part as a row of the gathered tensor: its gradients in a row, one after the other.
template <class Visit>
void with_places(const at::Tensor& row, const std::vector<at::Tensor>& gradients, Visit&& visit) {
  std::int64_t begin = 0;
  for (const at::Tensor& gradient : gradients) {
    visit(row.narrow(0, begin, gradient.numel()).view(gradient.sizes()), gradient);
    begin += gradient.numel();
  }
}

}  // namespace

TieSum::TieSum(const Tie& tie,
               Rank self,
               const std::vector<StageRuntime>& stages,
               std::int32_t group)
    : group_{.ranks = tie.members(), .id = group} {
  std::map<Rank, std::int64_t> parts;  // number of parts of each rank so far
  for (const Rank rank : tie.ranks) {
    most_ = std::max(most_, ++parts[rank]);
  }
  parts.clear();
  for (std::size_t i = 0; i < tie.stages.size(); ++i) {
    const auto member = std::ranges::lower_bound(group_.ranks, tie.ranks[i]);
    rows_.push_back((member - group_.ranks.begin()) * most_ + parts[tie.ranks[i]]++);
    if (tie.ranks[i] != self) {
      continue;
    }
    const auto stage = std::ranges::find(
        stages, tie.stages[i], [](const StageRuntime& runtime) { return runtime.program->id; });
    SC_CHECK(stage != stages.end(), "a rank of a tie has its stages of the tie");
    Part& part = mine_.emplace_back();
    width_ = 0;
    for (const std::string& name : tie.parameters) {
      part.push_back(stage->bucket.gradient(name));
      width_ += part.back().numel();
    }
  }
}

at::Tensor TieSum::packed() const {
  const at::Tensor all = at::zeros({most_ * width_}, mine_.front().front().options());
  std::int64_t begin = 0;
  for (const Part& part : mine_) {
    with_places(all.narrow(0, begin, width_),
                part,
                [](const at::Tensor& place, const at::Tensor& gradient) { place.copy_(gradient); });
    begin += width_;
  }
  return all;
}

void TieSum::run(Collective& collective, const Sequence& sequence, Deadline deadline) const {
  SC_CHECK(!mine_.empty(), "a rank of a tie holds one of its stages");
  const at::NoGradGuard no_grad;
  at::Tensor parts = packed();
  if (group_.ranks.size() > 1) {
    parts = collective.all_gather(group_, sequence, std::move(parts))->wait(deadline);
  }
  const auto row = [&](std::int64_t number) { return parts.narrow(0, number * width_, width_); };
  const at::Tensor sum = row(rows_.front()).clone();
  for (std::size_t i = 1; i < rows_.size(); ++i) {
    sum.add_(row(rows_[i]));
  }
  for (const Part& part : mine_) {
    with_places(sum, part, [](const at::Tensor& place, const at::Tensor& gradient) {
      gradient.copy_(place);
    });
  }
}

}  // namespace stagecraft
