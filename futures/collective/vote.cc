#include "stagecraft/futures/collective/vote.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include <ATen/ops/full.h>
#include <fmt/format.h>

#include "stagecraft/base/check.h"

namespace stagecraft {
namespace {

/// On the wire a ballot is float64, of one size on all ranks: finite (1 or 0), mirrored (exact: no
/// run has 2^53 rounds), then a squared norm for every parameter of the model, kElsewhere for those
/// of other ranks.
constexpr double kElsewhere = -1.0;  // no squared norm is negative
constexpr std::size_t kMirrored = 1;
constexpr std::size_t kNorms = 2;

at::Tensor encode(const Ballot& ballot) {
  at::Tensor tensor = at::full(
      {static_cast<std::int64_t>(kNorms) + ballot.model_parameters}, kElsewhere, at::kDouble);
  double* const out = tensor.mutable_data_ptr<double>();
  out[0] = ballot.finite ? 1.0 : 0.0;
  out[kMirrored] = static_cast<double>(ballot.mirrored);
  for (const SquaredNorm& norm : ballot.squared_norms) {
    SC_CHECK(norm.parameter >= 0 && norm.parameter < ballot.model_parameters,
             fmt::format("a ballot holds parameter {} of a model with {}",
                         norm.parameter,
                         ballot.model_parameters));
    double& place = out[kNorms + static_cast<std::size_t>(norm.parameter)];
    SC_CHECK(place == kElsewhere, fmt::format("a ballot holds parameter {} twice", norm.parameter));
    place = norm.value;
  }
  return tensor;
}

bool is_finite(double value) {
  return std::isfinite(value);
}

/// The squared norm that one of the ballots has for the parameter; 0 when it is frozen.
double squared_norm(std::span<const double> ballots, std::size_t size, std::size_t parameter) {
  double value = 0.0;
  bool found = false;
  for (; !ballots.empty(); ballots = ballots.subspan(size)) {
    const double cast = ballots[kNorms + parameter];
    if (cast == kElsewhere) {
      continue;
    }
    SC_CHECK(!found,
             fmt::format("two ballots hold parameter {}: a parameter has one owner", parameter));
    value = cast;
    found = true;
  }
  return value;
}

}  // namespace

VoteResult vote(Collective& collective,
                const Group& group,
                const Sequence& sequence,
                const Ballot& ballot,
                Deadline deadline) {
  const at::Tensor gathered =
      collective.all_gather(group, sequence, encode(ballot))->wait(deadline);
  const std::span<const double> ballots(gathered.const_data_ptr<double>(),
                                        static_cast<std::size_t>(gathered.numel()));
  const std::size_t size = ballots.size() / group.ranks.size();
  VoteResult result;
  for (std::size_t i = 0; i < group.ranks.size(); ++i) {
    const std::span<const double> cast = ballots.subspan(i * size, size);
    if (cast[0] != 1.0 || !std::ranges::all_of(cast, is_finite)) {
      result.all_finite = false;
      result.first_non_finite_rank = result.first_non_finite_rank.value_or(group.ranks[i]);
    }
    const auto mirrored = static_cast<std::int64_t>(cast[kMirrored]);
    result.mirrored = i == 0 ? mirrored : std::min(result.mirrored, mirrored);
  }
  double sum = 0.0;
  for (std::size_t parameter = 0; parameter + kNorms < size; ++parameter) {
    const double value = squared_norm(ballots, size, parameter);
    if (!is_finite(value) && !result.first_non_finite_parameter) {
      result.first_non_finite_parameter = static_cast<std::int64_t>(parameter);
    }
    sum += value;
  }
  result.total_norm = std::sqrt(sum);
  return result;
}

}  // namespace stagecraft
