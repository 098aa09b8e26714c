#include "stagecraft/futures/collective/vote.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include "stagecraft/base/check.h"

namespace stagecraft {
namespace {

/// On the wire a ballot is float64: finite (1 or 0), then parameter and squared norm in turns.
/// Indices are exact up to 2^53.
at::Tensor encode(const Ballot& ballot) {
  const auto size = static_cast<std::int64_t>(1 + 2 * ballot.squared_norms.size());
  at::Tensor tensor = at::empty({size}, at::kDouble);
  double* out = tensor.mutable_data_ptr<double>();
  *out++ = ballot.finite ? 1.0 : 0.0;
  for (const SquaredNorm& norm : ballot.squared_norms) {
    *out++ = static_cast<double>(norm.parameter);
    *out++ = norm.value;
  }
  return tensor;
}

Ballot decode(const at::Tensor& tensor, Rank from) {
  const bool is_ballot = tensor.scalar_type() == at::kDouble && tensor.dim() == 1 &&
                         tensor.is_contiguous() && tensor.numel() % 2 == 1;
  SC_CHECK(is_ballot, "what rank " + to_string(from) + " sent into the vote is no ballot");
  std::span<const double> in(tensor.const_data_ptr<double>(),
                             static_cast<std::size_t>(tensor.numel()));
  Ballot ballot;
  ballot.finite = in[0] == 1.0;
  for (in = in.subspan(1); !in.empty(); in = in.subspan(2)) {
    ballot.squared_norms.push_back({static_cast<std::int64_t>(in[0]), in[1]});
  }
  return ballot;
}

bool is_finite(const SquaredNorm& norm) {
  return std::isfinite(norm.value);
}

/// The squared norms of the whole model in its order of parameters.
std::vector<SquaredNorm> in_model_order(const std::vector<Ballot>& ballots) {
  std::vector<SquaredNorm> all;
  for (const Ballot& ballot : ballots) {
    all.insert(all.end(), ballot.squared_norms.begin(), ballot.squared_norms.end());
  }
  std::ranges::sort(all, {}, &SquaredNorm::parameter);
  const auto twice = std::ranges::adjacent_find(all, {}, &SquaredNorm::parameter);
  SC_CHECK(
      twice == all.end(),
      fmt::format("two ballots hold parameter {}: a parameter has one owner", twice->parameter));
  return all;
}

}  // namespace

VoteResult vote(Collective& collective,
                const Group& group,
                const Sequence& sequence,
                const Ballot& ballot,
                Deadline deadline) {
  const std::vector<at::Tensor> gathered =
      collective.all_gather(group, sequence, encode(ballot), deadline);
  VoteResult result;
  std::vector<Ballot> ballots;
  for (std::size_t i = 0; i < gathered.size(); ++i) {
    const Ballot& cast = ballots.emplace_back(decode(gathered[i], group.ranks[i]));
    if (!(cast.finite && std::ranges::all_of(cast.squared_norms, is_finite))) {
      result.all_finite = false;
      result.first_non_finite_rank = result.first_non_finite_rank.value_or(group.ranks[i]);
    }
  }
  double sum = 0.0;
  for (const SquaredNorm& norm : in_model_order(ballots)) {
    if (!is_finite(norm) && !result.first_non_finite_parameter) {
      result.first_non_finite_parameter = norm.parameter;
    }
    sum += norm.value;
  }
  result.total_norm = std::sqrt(sum);
  return result;
}

}  // namespace stagecraft
