#include "stagecraft/scheduler/planners/graphpipe/tree/sp_tree.h"

#include <algorithm>
#include <cstdint>
#include <map>

namespace stagecraft::graphpipe {
namespace {

/// An edge of the graph of junctions: the part of the tree between two of them.
struct Span {
  int from = 0;
  int to = 0;
  int tree = -1;  ///< -1: merged into a larger one
};

/// Reduces a graph of junctions to one span, if possible: it merges two spans in a row, and two
/// spans between the same junctions.
class Reduction {
 public:
  Reduction(SpTree& tree, int junctions, std::vector<Span> spans)
      : tree_(&tree), spans_(std::move(spans)), in_(at(junctions)), out_(at(junctions)) {
    for (int s = 0; s < static_cast<int>(spans_.size()); ++s) {
      enter(s);
    }
  }

  /// Returns the root, or -1 if more than one span is left between `source` and `sink`.
  int run(int source, int sink) {
    while (!waiting_.empty()) {
      const int junction = waiting_.back();
      waiting_.pop_back();
      if (junction != source && junction != sink) {
        join_in_row(junction);
      }
    }
    const auto left =
        std::ranges::count_if(spans_, [](const Span& span) { return span.tree >= 0; });
    const auto last = std::ranges::find_if(spans_, [](const Span& s) { return s.tree >= 0; });
    return left == 1 && last->from == source && last->to == sink ? last->tree : -1;
  }

 private:
  /// Puts span `s` between its junctions, and merges it with a span that is already there.
  void enter(int s) {
    Span& span = spans_[at(s)];
    const auto [beside, fresh] = between_.try_emplace({span.from, span.to}, s);
    if (!fresh) {
      Span& other = spans_[at(beside->second)];
      const int both[] = {other.tree, span.tree};
      other.tree = tree_->add(SpTree::Kind::Parallel, both);
      span.tree = -1;
    } else {
      out_[at(span.from)].push_back(s);
      in_[at(span.to)].push_back(s);
    }
    waiting_.push_back(span.from);
    waiting_.push_back(span.to);
  }

  void join_in_row(int junction) {
    auto& in = in_[at(junction)];
    auto& out = out_[at(junction)];
    if (in.size() != 1 || out.size() != 1) {
      return;
    }
    const int first = in.front();
    const int second = out.front();
    in.clear();
    out.clear();
    Span& before = spans_[at(first)];
    Span& after = spans_[at(second)];
    between_.erase({before.from, before.to});
    between_.erase({after.from, after.to});
    std::erase(out_[at(before.from)], first);
    std::erase(in_[at(after.to)], second);
    const int row[] = {before.tree, after.tree};
    before.tree = tree_->add(SpTree::Kind::Series, row);
    before.to = after.to;
    after.tree = -1;
    enter(first);
  }

  SpTree* tree_;
  std::vector<Span> spans_;
  std::vector<std::vector<int>> in_, out_;
  std::map<std::pair<int, int>, int> between_;
  std::vector<int> waiting_;
};

/// Makes a leaf for every operator and a span between its junctions. Returns no spans if an
/// operator has a producer whose consumers also have other producers: then no junction lies between
/// them.
std::vector<Span> spans_between_junctions(SpTree& tree, const Neighbors& graph, int& junctions) {
  const int operators = static_cast<int>(graph.preds.size());
  std::vector<Span> spans(at(operators));
  std::map<std::vector<int>, int> junction_before;  // by the consumers after it
  for (int op = 0; op < operators; ++op) {
    spans[at(op)] = {0, 1, tree.add_leaf(op)};  // between source and sink of the graph
  }
  std::vector<std::size_t> producers;  // by junction - 2
  for (int op = 0; op < operators; ++op) {
    const std::vector<int>& consumers = graph.succs[at(op)];
    if (consumers.empty()) {
      continue;
    }
    const auto [found, fresh] = junction_before.try_emplace(consumers, junctions);
    if (fresh) {
      ++junctions;
      producers.push_back(0);
      for (const int consumer : consumers) {
        if (spans[at(consumer)].from != 0) {
          return {};
        }
        spans[at(consumer)].from = found->second;
      }
    }
    spans[at(op)].to = found->second;
    ++producers[at(found->second - 2)];
  }
  for (int op = 0; op < operators; ++op) {
    const int before = spans[at(op)].from;
    if (before != 0 && producers[at(before - 2)] != graph.preds[at(op)].size()) {
      return {};
    }
  }
  return spans;
}

/// Sorts branches by their first operators, so that equal graphs make equal trees.
int sort_branches(SpTree& tree, int node) {
  const SpTree::Node& seen = tree.at(node);
  if (seen.kind == SpTree::Kind::Leaf) {
    return seen.op;
  }
  std::vector<std::pair<int, int>> first;
  for (const int child : std::vector<int>(seen.children)) {
    first.emplace_back(sort_branches(tree, child), child);
  }
  if (tree.at(node).kind == SpTree::Kind::Parallel) {
    std::ranges::sort(first);
    std::ranges::transform(first, tree.nodes[at(node)].children.begin(), [](const auto& child) {
      return child.second;
    });
  }
  return first.front().first;
}

}  // namespace

int SpTree::add_leaf(int op) {
  nodes.push_back({Kind::Leaf, op, {}});
  return static_cast<int>(nodes.size()) - 1;
}

int SpTree::add(Kind kind, std::span<const int> children) {
  if (children.size() == 1) {
    return children.front();
  }
  Node made{kind, -1, {}};
  // The first child may have many children and is no longer needed, so move them.
  if (Node& first = nodes[static_cast<std::size_t>(children.front())]; first.kind == kind) {
    made.children = std::move(first.children);
    children = children.subspan(1);
  }
  for (const int child : children) {
    const Node& taken = at(child);
    if (taken.kind == kind) {
      made.children.insert(made.children.end(), taken.children.begin(), taken.children.end());
    } else {
      made.children.push_back(child);
    }
  }
  nodes.push_back(std::move(made));
  return static_cast<int>(nodes.size()) - 1;
}

std::vector<int> SpTree::operators(int node) const {
  std::vector<int> found;
  std::vector<int> waiting{node};
  while (!waiting.empty()) {
    const Node& next = at(waiting.back());
    waiting.pop_back();
    if (next.kind == Kind::Leaf) {
      found.push_back(next.op);
    }
    waiting.insert(waiting.end(), next.children.rbegin(), next.children.rend());
  }
  return found;
}

std::string to_string(const SpTree& tree) {
  const auto print = [&](const auto& self, int node) -> std::string {
    const SpTree::Node& seen = tree.at(node);
    if (seen.kind == SpTree::Kind::Leaf) {
      return std::to_string(seen.op);
    }
    std::string text = seen.kind == SpTree::Kind::Series ? "S(" : "P(";
    for (const int child : seen.children) {
      text += (child == seen.children.front() ? "" : " ") + self(self, child);
    }
    return text + ")";
  };
  return print(print, tree.root);
}

Edges reduced_edges(int operators, const Edges& edges) {
  Neighbors graph = neighbors_of(operators, edges);
  const std::size_t words = at(operators + 63) / 64;
  std::vector<std::uint64_t> reached(at(operators) * words);  // by operator, all operators after it
  const auto reaches = [&](int op, int other) {
    return (reached[at(op) * words + at(other) / 64] >> (other % 64) & 1) != 0;
  };
  Edges kept;
  for (int op = operators - 1; op >= 0; --op) {
    std::vector<int>& consumers = graph.succs[at(op)];
    // Visit the nearest first: operators that it reaches need no edge of their own.
    std::ranges::sort(consumers);
    for (const int consumer : consumers) {
      if (reaches(op, consumer)) {
        continue;
      }
      kept.emplace_back(op, consumer);
      for (std::size_t w = 0; w < words; ++w) {
        reached[at(op) * words + w] |= reached[at(consumer) * words + w];
      }
      reached[at(op) * words + at(consumer) / 64] |= std::uint64_t{1} << (consumer % 64);
    }
  }
  std::ranges::sort(kept);
  return kept;
}

std::optional<SpTree> sp_tree_of(int operators, const Edges& edges) {
  SpTree tree;
  int junctions = 2;
  std::vector<Span> spans = spans_between_junctions(
      tree, neighbors_of(operators, reduced_edges(operators, edges)), junctions);
  if (spans.empty()) {
    return std::nullopt;
  }
  tree.root = Reduction(tree, junctions, std::move(spans)).run(0, 1);
  if (tree.root < 0) {
    return std::nullopt;
  }
  sort_branches(tree, tree.root);
  return tree;
}

}  // namespace stagecraft::graphpipe
