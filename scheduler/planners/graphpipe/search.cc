#include "stagecraft/scheduler/planners/graphpipe/search.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/planners/graphpipe/coarsen.h"
#include "stagecraft/scheduler/planners/graphpipe/downset_count.h"
#include "stagecraft/scheduler/planners/graphpipe/downset_search.h"
#include "stagecraft/scheduler/planners/graphpipe/tree/series_parallel.h"
#include "stagecraft/scheduler/planners/graphpipe/tree/tree_search.h"

namespace stagecraft::graphpipe {
namespace {

/// Sums in another order may differ in their last bits.
constexpr double kRounding = 1e-12;

/// An operator is cheap if it takes less than this share of all time.
constexpr double kCheap = 0.01;

/// Graphs of up to this many operators are searched without merging.
constexpr int kSmall = 256;

/// The factor by which added dependencies must lengthen the longest path before one row is also
/// tried.
constexpr double kMuchLonger = 1.1;

/// The number of stages that Auto lets the exact search try; it takes a second or two.
constexpr long kAutoEffort = 10'000'000;

/// Decides whether stages can keep a limit. The `last` call also minimizes the samples in flight.
using Search = std::function<std::optional<Partition>(double limit, bool last)>;

/// Returns a limit that no stages can undercut: every operator is in a stage, and all work is done.
double lower_bound_of(const PartitionProblem& problem) {
  double longest = 0;
  for (std::size_t op = 0; op < at(problem.operators); ++op) {
    double least = std::numeric_limits<double>::infinity();
    for (const Variant& variant : problem.variants) {
      least = std::min(least, variant.time[op]);
    }
    longest = std::max(longest, least);
  }
  const std::vector<double> work = least_work(problem);
  return std::max(longest, std::accumulate(work.begin(), work.end(), 0.0) / problem.devices);
}

/// `best`: stages known already.
std::optional<Partition> smallest(const PartitionProblem& problem,
                                  const Search& search,
                                  const SearchOptions& options,
                                  std::optional<Partition> best = std::nullopt) {
  constexpr double kNoLimit = std::numeric_limits<double>::max();
  const auto is_over = [&] { return options.is_over && options.is_over(); };
  const double bound = lower_bound_of(problem);
  double below = bound * (1 - kRounding);
  // Most answers are near the bound, where a search is fast, so the limit grows in increasing
  // steps.
  for (double share = 0; !best; share = share * 2 + 0.05) {
    const double limit = share > 1000 ? kNoLimit : bound * (1 + share) * (1 + kRounding);
    best = search(limit, false);
    if (!best && limit == kNoLimit) {
      return std::nullopt;
    }
    below = best ? below : limit;
  }
  while (best->time - below > options.precision * best->time) {
    if (is_over()) {
      return best;
    }
    const double middle = below + (best->time - below) / 2;
    if (auto found = search(middle, false)) {
      best = std::move(found);
    } else {
      below = middle;
    }
  }
  if (problem.operators > kSmall || is_over()) {
    return best;  // too many ways to compare by more than devices
  }
  const auto last = search(best->time * (1 + kRounding), true);
  return last && better(*last, *best) ? last : best;
}

/// Returns a tree of one row, so that every stage is a range of the operators' order.
SpTree row_of(int operators) {
  SpTree tree;
  std::vector<int> leaves;
  for (int op = 0; op < operators; ++op) {
    leaves.push_back(tree.add_leaf(op));
  }
  tree.root = tree.add(SpTree::Kind::Series, leaves);
  return tree;
}

std::optional<Partition> in_tree(const PartitionProblem& problem,
                                 const SpTree& tree,
                                 const SearchOptions& options) {
  const bool absorbing = options.mode != SearchMode::Strict;
  const auto search = [&](double limit, bool last) {
    return tree_search(problem, tree, limit, {.absorbing = absorbing, .least_in_flight = last});
  };
  return smallest(problem, search, options);
}

std::optional<Partition> better_of(std::optional<Partition> a, std::optional<Partition> b) {
  return !a || (b && better(*b, *a)) ? b : a;
}

/// Searches a graph that is not a tree with added dependencies. If they cost much, it also tries
/// the order of the forward.
std::optional<Partition> with_dependencies(const PartitionProblem& problem,
                                           const SearchOptions& options) {
  const std::vector<double>& times = problem.variants.front().time;
  const SpTree tree = series_parallel(problem.operators, problem.edges, times);
  auto found = in_tree(problem, tree, options);
  const double longest = critical_path(problem.operators, problem.edges, times);
  if (critical_path(tree, times) > kMuchLonger * longest) {
    found = better_of(std::move(found), in_tree(problem, row_of(problem.operators), options));
  }
  return found;
}

std::optional<Partition> in_any_tree(const PartitionProblem& problem,
                                     const SearchOptions& options) {
  if (const auto tree = sp_tree_of(problem.operators, problem.edges)) {
    return in_tree(problem, *tree, options);
  }
  const CoarseProblem coarse = coarsen(problem, kCheap);
  if (const auto tree = sp_tree_of(coarse.problem.operators, coarse.problem.edges)) {
    if (auto found = in_tree(coarse.problem, *tree, options)) {
      return refine(problem, coarse, *found);
    }
  }
  return with_dependencies(problem, options);
}

/// `found`: stages known already. Requires: takes_downsets(problem).
std::optional<Partition> among_all(const PartitionProblem& problem,
                                   long effort,
                                   const SearchOptions& options,
                                   std::optional<Partition> found = std::nullopt) {
  DownsetSearch exact(problem, effort);
  const auto search = [&](double limit, bool last) { return exact.find(limit, last); };
  return smallest(problem, search, options, std::move(found));
}

std::optional<Partition> in_small_graph(const PartitionProblem& problem,
                                        const SearchOptions& options) {
  if (options.mode == SearchMode::Exact) {
    if (!takes_downsets(problem)) {
      throw Error(
          Errc::UsageArgument,
          fmt::format("the exact search takes up to {} operators that have up to {} downsets, "
                      "and one size of microbatch; use the absorbing search for this graph "
                      "of {} operators",
                      kMostDownsetOperators,
                      kMostDownsets,
                      problem.operators));
    }
    return among_all(problem, std::numeric_limits<long>::max(), options);
  }
  auto found = in_any_tree(problem, options);
  return options.mode == SearchMode::Auto && takes_downsets(problem)
             ? among_all(problem, kAutoEffort, options, std::move(found))
             : found;
}

}  // namespace

std::optional<Partition> partition_graph(const PartitionProblem& problem,
                                         const SearchOptions& options) {
  if (problem.operators <= kSmall) {
    return in_small_graph(problem, options);
  }
  const CoarseProblem coarse = coarsen(problem, std::min(kCheap, 1.0 / (8.0 * problem.devices)));
  const auto found = in_small_graph(coarse.problem, options);
  return found ? std::optional(refine(problem, coarse, *found)) : std::nullopt;
}

}  // namespace stagecraft::graphpipe
