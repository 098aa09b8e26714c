#include "stagecraft/futures/collective/vote.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include <ATen/ops/full.h>
#include <fmt/format.h>

#include "stagecraft/base/check.h"

namespace stagecraft {
namespace {

/// On the wire a ballot is float64, of one size on all ranks: the lowest rank that found a
/// non-finite value; mirrored (exact: no run has 2^53 rounds); then a squared norm for every
/// parameter of the model, kElsewhere for parameters of other ranks. Combined ballots have the same
/// form.
constexpr double kNobody = -1.0;
constexpr double kElsewhere = -1.0;  // no squared norm is negative
constexpr std::size_t kMirrored = 1;
constexpr std::size_t kNorms = 2;

bool is_finite(double value) {
  return std::isfinite(value);
}

at::Tensor unfilled(std::int64_t size) {
  return at::full({size}, kElsewhere, at::kDouble);
}

at::Tensor encode(const Ballot& ballot) {
  at::Tensor tensor = unfilled(static_cast<std::int64_t>(kNorms) + ballot.model_parameters);
  double* const out = tensor.mutable_data_ptr<double>();
  const bool all_finite =
      ballot.finite && std::ranges::all_of(ballot.squared_norms, is_finite, &SquaredNorm::value);
  out[0] = all_finite ? kNobody : static_cast<double>(ballot.rank.value);
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

/// Returns the squared norm that one of the ballots has for the parameter; kElsewhere if none has.
double squared_norm(std::span<const double> ballots, std::size_t size, std::size_t parameter) {
  double value = kElsewhere;
  for (; !ballots.empty(); ballots = ballots.subspan(size)) {
    const double cast = ballots[kNorms + parameter];
    if (cast == kElsewhere) {
      continue;
    }
    SC_CHECK(value == kElsewhere,
             fmt::format("two ballots hold parameter {}: expected one owner of each parameter",
                         parameter));
    value = cast;
  }
  return value;
}

/// Combines all the members' ballots, given one after the other.
at::Tensor together(const at::Tensor& gathered, std::size_t members) {
  const std::span<const double> ballots(gathered.const_data_ptr<double>(),
                                        static_cast<std::size_t>(gathered.numel()));
  const std::size_t size = ballots.size() / members;
  at::Tensor tensor = unfilled(static_cast<std::int64_t>(size));
  double* const out = tensor.mutable_data_ptr<double>();
  out[0] = kNobody;
  out[kMirrored] = ballots[kMirrored];
  for (std::size_t i = 0; i < members; ++i) {
    const double first = ballots[i * size];
    if (first != kNobody && (out[0] == kNobody || first < out[0])) {
      out[0] = first;
    }
    out[kMirrored] = std::min(out[kMirrored], ballots[i * size + kMirrored]);
  }
  for (std::size_t parameter = 0; parameter + kNorms < size; ++parameter) {
    out[kNorms + parameter] = squared_norm(ballots, size, parameter);
  }
  return tensor;
}

/// Divides a group into rows of equal length or one longer. A column has one member of every row.
/// If a row has no member in the last column, the row's last member is there too.
class Rows {
 public:
  explicit Rows(const Group& group) : group_(group) {
    while (count_ * count_ < group.ranks.size()) {
      ++count_;
    }
  }

  [[nodiscard]] std::size_t row_of(std::size_t member) const {
    std::size_t row = 0;
    while (begin(row + 1) <= member) {
      ++row;
    }
    return row;
  }
  [[nodiscard]] Group row(std::size_t row) const {
    Group members{.id = group_.id};
    for (std::size_t i = begin(row); i < begin(row + 1); ++i) {
      members.ranks.push_back(group_.ranks[i]);
    }
    return members;
  }
  [[nodiscard]] Group column(std::size_t column) const {
    Group members{.id = group_.id};
    for (std::size_t row = 0; row < count_; ++row) {
      members.ranks.push_back(group_.ranks[std::min(begin(row) + column, begin(row + 1) - 1)]);
    }
    return members;
  }
  /// Returns the columns of a member: one or two.
  [[nodiscard]] std::vector<std::size_t> columns_of(std::size_t member) const {
    const std::size_t row = row_of(member);
    std::vector<std::size_t> columns{member - begin(row)};
    if (member + 1 == begin(row + 1)) {
      for (std::size_t beyond = columns.front() + 1; beyond < width(); ++beyond) {
        columns.push_back(beyond);
      }
    }
    return columns;
  }

 private:
  [[nodiscard]] std::size_t begin(std::size_t row) const {
    return row * group_.ranks.size() / count_;
  }
  [[nodiscard]] std::size_t width() const { return (group_.ranks.size() + count_ - 1) / count_; }

  const Group& group_;
  std::size_t count_ = 1;
};

/// Keeps VO-2.
at::Tensor exchange(Collective& collective,
                    const Group& group,
                    const Sequence& sequence,
                    const Ballot& ballot,
                    Deadline deadline) {
  const at::Tensor own = encode(ballot);
  if (group.ranks.size() <= kVoteAtOnce) {
    return together(collective.all_gather(group, sequence, own)->wait(deadline),
                    group.ranks.size());
  }
  const auto found = std::ranges::lower_bound(group.ranks, ballot.rank);
  const auto self = static_cast<std::size_t>(found - group.ranks.begin());
  const Rows rows(group);
  const Group row = rows.row(rows.row_of(self));
  const at::Tensor of_row =
      together(collective.all_gather(row, sequence, own)->wait(deadline), row.ranks.size());
  std::vector<std::pair<Group, std::unique_ptr<PendingResult>>> columns;
  for (const std::size_t number : rows.columns_of(self)) {
    Sequence later = sequence;
    later.number += 1 + static_cast<std::int32_t>(number);
    Group column = rows.column(number);
    auto pending = collective.all_gather(column, later, of_row);
    columns.emplace_back(std::move(column), std::move(pending));
  }
  const auto& [column, pending] = columns.front();  // every column has the whole result
  return together(pending->wait(deadline), column.ranks.size());
}

}  // namespace

VoteResult vote(Collective& collective,
                const Group& group,
                const Sequence& sequence,
                const Ballot& ballot,
                Deadline deadline) {
  const at::Tensor all = exchange(collective, group, sequence, ballot, deadline);
  const std::span<const double> said(all.const_data_ptr<double>(),
                                     static_cast<std::size_t>(all.numel()));
  VoteResult result{.mirrored = static_cast<std::int64_t>(said[kMirrored])};
  if (said[0] != kNobody) {
    result.all_finite = false;
    result.first_non_finite_rank = Rank(static_cast<std::int32_t>(said[0]));
  }
  double sum = 0.0;
  for (std::size_t parameter = 0; parameter + kNorms < said.size(); ++parameter) {
    const double norm = said[kNorms + parameter];
    if (norm == kElsewhere) {
      continue;  // frozen
    }
    if (!is_finite(norm) && !result.first_non_finite_parameter) {
      result.first_non_finite_parameter = static_cast<std::int64_t>(parameter);
    }
    sum += norm;
  }
  result.total_norm = std::sqrt(sum);
  return result;
}

}  // namespace stagecraft
