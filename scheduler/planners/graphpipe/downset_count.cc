#include "stagecraft/scheduler/planners/graphpipe/downset_count.h"

#include <algorithm>

#include "stagecraft/scheduler/planners/graphpipe/tree/sp_tree.h"
#include "stagecraft/scheduler/planners/graphpipe/tree/twins.h"

namespace stagecraft::graphpipe {
namespace {

/// Counts in the tree, if there is one; otherwise one by one, up to the limit.
double downsets_of(const SpTree& tree, int node) {
  const SpTree::Node& seen = tree.at(node);
  double count = seen.kind == SpTree::Kind::Leaf ? 2 : 1;
  for (const int child : seen.children) {
    const double inside = downsets_of(tree, child);
    count = seen.kind == SpTree::Kind::Series ? count + inside - 1 : count * inside;
  }
  return count;
}

/// Counts up-closed sets, of which there are as many as downsets, up to `most`. Chooses operators
/// from `op` down to 0; `taken` holds the choice of later ones.
int count_upsets(const Neighbors& graph, int op, std::vector<char>& taken, int most) {
  if (op < 0 || most <= 0) {
    return 1;
  }
  int count = count_upsets(graph, op - 1, taken, most);
  if (count < most &&
      std::ranges::all_of(graph.succs[at(op)], [&](int c) { return taken[at(c)] != 0; })) {
    taken[at(op)] = 1;
    count += count_upsets(graph, op - 1, taken, most - count);
    taken[at(op)] = 0;
  }
  return count;
}

}  // namespace

bool takes_downsets(const PartitionProblem& problem) {
  if (problem.operators > kMostDownsetOperators ||
      problem.variants.front().turns != problem.variants.back().turns) {
    return false;
  }
  if (const auto tree = sp_tree_of(problem.operators, problem.edges)) {
    return downsets_of(*tree, tree->root) <= kMostDownsets;
  }
  std::vector<char> taken(at(problem.operators));
  return count_upsets(neighbors_of(problem.operators, problem.edges),
                      problem.operators - 1,
                      taken,
                      kMostDownsets + 1) <= kMostDownsets;
}

}  // namespace stagecraft::graphpipe
