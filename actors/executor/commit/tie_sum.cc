#include "stagecraft/actors/executor/commit/tie_sum.h"

#include <algorithm>
#include <map>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>

#include "stagecraft/base/check.h"

namespace stagecraft {
namespace {

/// Visits a part as a row of the gathered tensor: its gradients in a row, one after the other.
template <class Visit>
void with_gradients(const at::Tensor& row,
                    const std::vector<at::Tensor>& gradients,
                    Visit&& visit) {
  std::int64_t begin = 0;
  for (const at::Tensor& gradient : gradients) {
    visit(row.narrow(0, begin, gradient.numel()).view(gradient.sizes()), gradient);
    begin += gradient.numel();
  }
}

}  // namespace

TieSum::TieSum(Group members, const TieParts& parts) : members_(std::move(members)) {
  std::map<Rank, std::int64_t> count;  // number of parts of each rank so far
  for (const Rank rank : parts.ranks) {
    most_ = std::max(most_, ++count[rank]);
  }
  count.clear();
  for (std::size_t i = 0; i < parts.ranks.size(); ++i) {
    const auto member = std::ranges::lower_bound(members_.ranks, parts.ranks[i]);
    rows_.push_back((member - members_.ranks.begin()) * most_ + count[parts.ranks[i]]++);
    if (parts.mine[i] == nullptr) {
      continue;
    }
    Part& part = mine_.emplace_back();
    width_ = 0;
    for (const std::string& name : parts.parameters) {
      part.push_back(parts.mine[i]->buckets.gradient(name));
      width_ += part.back().numel();
    }
  }
  SC_CHECK(!mine_.empty(), "a rank of a tie holds one of its stages");
}

at::Tensor TieSum::packed() const {
  const at::Tensor all = at::zeros({most_ * width_}, mine_.front().front().options());
  std::int64_t begin = 0;
  for (const Part& part : mine_) {
    with_gradients(
        all.narrow(0, begin, width_),
        part,
        [](const at::Tensor& place, const at::Tensor& gradient) { place.copy_(gradient); });
    begin += width_;
  }
  return all;
}

void TieSum::start(Collective& collective, const Sequence& step, const SumTurn& /*turn*/) {
  if (members_.ranks.size() > 1) {
    const at::NoGradGuard no_grad;
    gathered_ = collective.all_gather(members_, step, packed());
  }
}

void TieSum::finish(Deadline deadline) {
  const at::NoGradGuard no_grad;
  const std::unique_ptr<PendingResult> gathered = std::move(gathered_);
  const at::Tensor parts = gathered == nullptr ? packed() : gathered->wait(deadline);
  const auto row = [&](std::int64_t number) { return parts.narrow(0, number * width_, width_); };
  const at::Tensor sum = row(rows_.front()).clone();
  for (std::size_t i = 1; i < rows_.size(); ++i) {
    sum.add_(row(rows_[i]));
  }
  for (const Part& part : mine_) {
    with_gradients(sum, part, [](const at::Tensor& place, const at::Tensor& gradient) {
      gradient.copy_(place);
    });
  }
}

}  // namespace stagecraft
