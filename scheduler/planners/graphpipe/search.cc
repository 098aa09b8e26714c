#include "stagecraft/scheduler/planners/graphpipe/search.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "stagecraft/scheduler/planners/graphpipe/downset_search.h"
#include "stagecraft/scheduler/planners/graphpipe/series_parallel.h"
#include "stagecraft/scheduler/planners/graphpipe/tree_search.h"

namespace stagecraft::graphpipe {
namespace {

/// Sums in another order differ by their last bits.
constexpr double kRounding = 1e-12;

/// Stages that Auto lets the exact search try, which takes about as many in a second or two.
constexpr long kAutoEffort = 10'000'000;

/// Answers whether stages keep a limit; asked for the last time, which has the least in flight too.
using Search = std::function<std::optional<Partition>(double limit, bool last)>;

/// No stages keep less: every operator is in a stage, and all work is done.
double lower_bound_of(const PartitionProblem& problem) {
  double work = 0;
  double longest = 0;
  for (std::size_t op = 0; op < static_cast<std::size_t>(problem.operators); ++op) {
    double least_work = std::numeric_limits<double>::infinity();
    double least = std::numeric_limits<double>::infinity();
    for (const Variant& variant : problem.variants) {
      least_work = std::min(least_work, variant.time[op] * variant.devices);
      least = std::min(least, variant.time[op]);
    }
    work += least_work;
    longest = std::max(longest, least);
  }
  return std::max(longest, work / problem.devices);
}

/// `best`: stages that are known already.
std::optional<Partition> smallest(const PartitionProblem& problem,
                                  const Search& search,
                                  double precision,
                                  std::optional<Partition> best = std::nullopt) {
  constexpr double kNoLimit = std::numeric_limits<double>::max();
  const double bound = lower_bound_of(problem);
  double below = bound * (1 - kRounding);
  // Most answers are near the bound, and a search is quick there: it is left in growing steps.
  for (double share = 0; !best; share = share * 2 + 0.05) {
    const double limit = share > 1000 ? kNoLimit : bound * (1 + share) * (1 + kRounding);
    best = search(limit, false);
    if (!best && limit == kNoLimit) {
      return std::nullopt;
    }
    below = best ? below : limit;
  }
  while (best->time - below > precision * best->time) {
    const double middle = below + (best->time - below) / 2;
    if (auto found = search(middle, false)) {
      best = std::move(found);
    } else {
      below = middle;
    }
  }
  const auto last = search(best->time * (1 + kRounding), true);
  return last && better(*last, *best) ? last : best;
}

std::optional<Partition> in_tree(const PartitionProblem& problem, const SearchOptions& options) {
  std::vector<double> times(static_cast<std::size_t>(problem.operators));
  for (std::size_t op = 0; op < times.size(); ++op) {
    times[op] = problem.variants.front().time[op];
  }
  const SpTree tree = series_parallel(problem.operators, problem.edges, times);
  const bool absorbing = options.mode != SearchMode::Strict;
  const auto search = [&](double limit, bool last) {
    return tree_search(problem, tree, limit, {.absorbing = absorbing, .least_in_flight = last});
  };
  return smallest(problem, search, options.precision);
}

}  // namespace

std::optional<Partition> partition_graph(const PartitionProblem& problem,
                                         const SearchOptions& options) {
  std::optional<Partition> found;
  if (options.mode != SearchMode::Exact) {
    found = in_tree(problem, options);
    if (options.mode != SearchMode::Auto || !takes_downsets(problem)) {
      return found;
    }
  }
  DownsetSearch exact = options.mode == SearchMode::Exact ? DownsetSearch(problem)
                                                          : DownsetSearch(problem, kAutoEffort);
  const auto search = [&](double limit, bool last) { return exact.find(limit, last); };
  return smallest(problem, search, options.precision, std::move(found));
}

}  // namespace stagecraft::graphpipe
