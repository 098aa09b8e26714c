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

std::int64_t width_of(const std::vector<at::Tensor>& part) {
  std::int64_t width = 0;
  for (const at::Tensor& gradient : part) {
    width += gradient.numel();
  }
  return width;
}

}  // namespace

TieSum::TieSum(Group members, const TieParts& parts)
    : members_(std::move(members)), parameters_(parts.parameters) {
  std::map<Rank, std::int64_t> count;  // number of parts of each rank so far
  for (const Rank rank : parts.ranks) {
    most_ = std::max(most_, ++count[rank]);
  }
  count.clear();
  for (std::size_t i = 0; i < parts.ranks.size(); ++i) {
    const auto member = std::ranges::lower_bound(members_.ranks, parts.ranks[i]);
    rows_.push_back((member - members_.ranks.begin()) * most_ + count[parts.ranks[i]]++);
    if (parts.mine[i] != nullptr) {
      mine_.push_back(parts.mine[i]);
    }
  }
  SC_CHECK(!mine_.empty(), "a rank of a tie holds one of its stages");
}

std::vector<TieSum::Part> TieSum::own_parts() const {
  std::vector<Part> parts;
  for (const StageRuntime* stage : mine_) {
    Part& part = parts.emplace_back();
    for (const std::string& name : parameters_) {
      part.push_back(stage->buckets.gradient(name));
    }
  }
  return parts;
}

at::Tensor TieSum::packed() const {
  const std::vector<Part> parts = own_parts();
  const std::int64_t width = width_of(parts.front());
  const at::Tensor all = at::zeros({most_ * width}, parts.front().front().options());
  std::int64_t begin = 0;
  for (const Part& part : parts) {
    with_gradients(
        all.narrow(0, begin, width), part, [](const at::Tensor& place, const at::Tensor& gradient) {
          place.copy_(gradient);
        });
    begin += width;
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
  const std::vector<Part> own = own_parts();
  const std::int64_t width = width_of(own.front());
  const auto row = [&](std::int64_t number) { return parts.narrow(0, number * width, width); };
  const at::Tensor sum = row(rows_.front()).clone();
  for (std::size_t i = 1; i < rows_.size(); ++i) {
    sum.add_(row(rows_[i]));
  }
  for (const Part& part : own) {
    with_gradients(sum, part, [](const at::Tensor& place, const at::Tensor& gradient) {
      gradient.copy_(place);
    });
  }
}

}  // namespace stagecraft
