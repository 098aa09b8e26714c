#include "stagecraft/scheduler/planners/graphpipe/tree/twins.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "stagecraft/scheduler/planners/graphpipe/tree/tree_rows.h"

namespace stagecraft::graphpipe {
namespace {

/// The operators that an operator reads and feeds. Operators of its own chain are named by their
/// place in it, as negative numbers.
using Surroundings = std::pair<std::set<int>, std::set<int>>;

std::vector<Surroundings> surroundings_of(const std::vector<int>& chain, const Edges& edges) {
  std::map<int, int> place;
  for (std::size_t i = 0; i < chain.size(); ++i) {
    place.emplace(chain[i], static_cast<int>(i));
  }
  const auto name = [&](int op) {
    const auto found = place.find(op);
    return found == place.end() ? op : -1 - found->second;
  };
  std::vector<Surroundings> made(chain.size());
  for (const auto& [from, to] : edges) {
    if (const auto found = place.find(from); found != place.end()) {
      made[at(found->second)].second.insert(name(to));
    }
    if (const auto found = place.find(to); found != place.end()) {
      made[at(found->second)].first.insert(name(from));
    }
  }
  return made;
}

std::size_t held(const std::vector<int>& chain, const OperatorSet& downset) {
  return static_cast<std::size_t>(
      std::ranges::count_if(chain, [&](int op) { return downset[at(op)]; }));
}

/// Returns the chains ordered from the one that holds most to the one that holds least.
std::vector<std::size_t> by_held(const std::vector<std::vector<int>>& chains,
                                 const OperatorSet& downset) {
  std::vector<std::size_t> sorted(chains.size());
  std::iota(sorted.begin(), sorted.end(), std::size_t{0});
  std::ranges::stable_sort(
      sorted, std::greater<>(), [&](std::size_t c) { return held(chains[c], downset); });
  return sorted;
}

}  // namespace

Twins Twins::of(const PartitionProblem& problem) {
  Twins made;
  made.before_.assign(at(problem.operators), -1);
  made.kin_ = made.chain_ = made.before_;
  const auto tree = sp_tree_of(problem.operators, problem.edges);
  if (!tree) {
    made.order_.resize(at(problem.operators));
    std::iota(made.order_.rbegin(), made.order_.rend(), 0);
    return made;
  }
  const TreeRows rows = rows_of(*tree, problem);
  made.order_.assign(rows.operators.rbegin(), rows.operators.rend());
  for (const TreeRow& row : rows.rows) {
    for (const TreeItem& item : row.items) {
      std::map<int, std::vector<Chain>> alike;
      // Starts at the last, as in order_.
      for (std::size_t b = item.branches.size(); b-- > 0;) {
        const TreeRow& branch = rows.rows[at(item.branches[b])];
        if (!branch.flat) {
          continue;
        }
        const Chain chain(rows.operators.begin() + branch.items.front().begin,
                          rows.operators.begin() + branch.items.back().end);
        auto& known = alike[item.like[b]];
        if (known.empty() || surroundings_of(known.front(), problem.edges) ==
                                 surroundings_of(chain, problem.edges)) {
          known.push_back(chain);
        }
      }
      for (const auto& [like, chains] : alike) {
        for (std::size_t c = 0; chains.size() > 1 && c < chains.size(); ++c) {
          for (std::size_t i = 0; i < chains[c].size(); ++i) {
            made.kin_[at(chains[c][i])] = static_cast<int>(made.twins_.size());
            made.chain_[at(chains[c][i])] = static_cast<int>(c);
            made.before_[at(chains[c][i])] = c == 0 ? -1 : chains[c - 1][i];
          }
        }
        if (chains.size() > 1) {
          made.twins_.push_back(chains);
        }
      }
    }
  }
  return made;
}

bool Twins::equal_before(int op, const OperatorSet& downset) const {
  const std::vector<Chain>& chains = twins_[at(kin_[at(op)])];
  const std::size_t chain = at(chain_[at(op)]);
  return held(chains[chain], downset) == held(chains[chain - 1], downset);
}

OperatorSet Twins::sorted(const OperatorSet& downset) const {
  OperatorSet made = downset;
  for (const std::vector<Chain>& chains : twins_) {
    const std::vector<std::size_t> sorted = by_held(chains, downset);
    for (std::size_t c = 0; c < chains.size(); ++c) {
      for (std::size_t i = 0; i < chains[c].size(); ++i) {
        made[at(chains[c][i])] = downset[at(chains[sorted[c]][i])];
      }
    }
  }
  return made;
}

std::vector<int> Twins::places(const OperatorSet& downset) const {
  std::vector<int> made(before_.size());
  std::iota(made.begin(), made.end(), 0);
  for (const std::vector<Chain>& chains : twins_) {
    const std::vector<std::size_t> sorted = by_held(chains, downset);
    for (std::size_t c = 0; c < chains.size(); ++c) {
      for (std::size_t i = 0; i < chains[c].size(); ++i) {
        made[at(chains[c][i])] = chains[sorted[c]][i];
      }
    }
  }
  return made;
}

}  // namespace stagecraft::graphpipe
