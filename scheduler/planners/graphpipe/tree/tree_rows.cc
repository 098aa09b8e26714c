#include "stagecraft/scheduler/planners/graphpipe/tree/tree_rows.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace stagecraft::graphpipe {
namespace {

/// Makes rows and compares branches by the figures of their operators.
class RowMaker {
 public:
  RowMaker(const SpTree& tree, const PartitionProblem& problem)
      : tree_(&tree), problem_(&problem) {}

  TreeRows take() {
    made_.operators = tree_->operators(tree_->root);
    add_row(tree_->root, 0);
    return std::move(made_);
  }

 private:
  struct Made {
    int row = 0;
    int end = 0;
    int kind = 0;  ///< equal for rows of the same form and figures
  };

  Made add_row(int node, int begin) {
    const SpTree::Node& seen = tree_->at(node);
    const std::vector<int> alone{node};
    TreeRow row;
    std::vector<int> kinds;
    for (const int child : seen.kind == SpTree::Kind::Series ? seen.children : alone) {
      const int kind = add_item(row, child, begin);
      begin = row.items.back().end;
      row.flat = row.flat && row.items.back().branches.empty();
      kinds.push_back(kind);
    }
    made_.rows.push_back(std::move(row));
    return {static_cast<int>(made_.rows.size()) - 1, begin, number(kinds)};
  }

  int add_item(TreeRow& row, int node, int begin) {
    const SpTree::Node& seen = tree_->at(node);
    TreeItem item{.begin = begin, .end = begin + 1, .branches = {}, .like = {}};
    if (seen.kind == SpTree::Kind::Leaf) {
      row.items.push_back(std::move(item));
      return figures_number(seen.op);
    }
    std::vector<int> kinds;
    for (const int child : seen.children) {
      const Made branch = add_row(child, begin);
      begin = branch.end;
      item.branches.push_back(branch.row);
      kinds.push_back(branch.kind);
      item.like.push_back(static_cast<int>(std::ranges::find(kinds, branch.kind) - kinds.begin()));
    }
    item.end = begin;
    row.items.push_back(std::move(item));
    std::ranges::sort(kinds);
    kinds.push_back(-1);  // no row has this
    return number(kinds);
  }

  int number(const std::vector<int>& kinds) {
    if (kinds.size() == 1) {
      return kinds.front();
    }
    return kinds_.try_emplace(kinds, next_ + static_cast<int>(kinds_.size())).first->second;
  }

  int figures_number(int op) {
    std::vector<double> figures{problem_->fixed.empty() ? 0 : problem_->fixed[at(op)]};
    for (const Variant& variant : problem_->variants) {
      for (const std::vector<double>* list : {&variant.time, &variant.send, &variant.kept}) {
        figures.push_back(list->empty() ? 0 : (*list)[at(op)]);
      }
    }
    return figures_.try_emplace(std::move(figures), static_cast<int>(figures_.size()))
        .first->second;
  }

  const SpTree* tree_;
  const PartitionProblem* problem_;
  TreeRows made_;
  std::map<std::vector<double>, int> figures_;
  std::map<std::vector<int>, int> kinds_;
  int next_ = 1 << 30;  // larger than the numbers of all figures
};

std::vector<double> moved(const std::vector<double>& figures, const std::vector<int>& operators) {
  std::vector<double> made;
  if (!figures.empty()) {
    std::ranges::transform(
        operators, std::back_inserter(made), [&](int op) { return figures[at(op)]; });
  }
  return made;
}

}  // namespace

TreeRows rows_of(const SpTree& tree, const PartitionProblem& problem) {
  return RowMaker(tree, problem).take();
}

PartitionProblem by_place(const PartitionProblem& problem, const std::vector<int>& operators) {
  PartitionProblem made = problem;
  std::vector<int> place(operators.size());
  for (std::size_t p = 0; p < operators.size(); ++p) {
    place[at(operators[p])] = static_cast<int>(p);
  }
  for (auto& [from, to] : made.edges) {
    from = place[at(from)];
    to = place[at(to)];
  }
  made.fixed = moved(problem.fixed, operators);
  for (Variant& variant : made.variants) {
    variant.time = moved(variant.time, operators);
    variant.send = moved(variant.send, operators);
    variant.kept = moved(variant.kept, operators);
  }
  return made;
}

}  // namespace stagecraft::graphpipe
