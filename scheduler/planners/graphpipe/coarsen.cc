#include "stagecraft/scheduler/planners/graphpipe/coarsen.h"

#include <algorithm>

#include "stagecraft/scheduler/planners/graphpipe/contraction.h"

namespace stagecraft::graphpipe {
namespace {

std::vector<double> sums(const std::vector<double>& figures,
                         const std::vector<std::vector<int>>& members) {
  std::vector<double> made;
  for (const std::vector<int>& each : members) {
    made.push_back(0);
    for (const int op : each) {
      made.back() += figures.empty() ? 0 : figures[at(op)];
    }
  }
  return made;
}

/// Works like sums(), but leaves out results that only members read.
std::vector<double> sent(std::vector<double> figures,
                         const std::vector<std::vector<int>>& members,
                         const Neighbors& graph) {
  for (const std::vector<int>& each : members) {
    for (const int op : figures.empty() ? std::vector<int>{} : each) {
      const bool inside = std::ranges::all_of(graph.succs[at(op)], [&](int consumer) {
        return std::ranges::binary_search(each, consumer);
      });
      figures[at(op)] *= inside ? 0 : 1;
    }
  }
  return figures.empty() ? figures : sums(figures, members);
}

}  // namespace

CoarseProblem coarsen(const PartitionProblem& problem, double limit) {
  Contraction contraction =
      contract(problem.operators, problem.edges, problem.variants.front().time, limit);
  CoarseProblem made{problem, std::move(contraction.members)};
  made.problem.operators = static_cast<int>(made.members.size());
  made.problem.edges = std::move(contraction.edges);
  made.problem.fixed = sums(problem.fixed, made.members);
  const Neighbors graph = neighbors_of(problem.operators, problem.edges);
  for (Variant& variant : made.problem.variants) {
    variant.time = sums(variant.time, made.members);
    variant.kept = sums(variant.kept, made.members);
    variant.send = sent(std::move(variant.send), made.members, graph);
  }
  return made;
}

Partition refine(const PartitionProblem& problem,
                 const CoarseProblem& coarse,
                 const Partition& found) {
  std::vector<PartitionStage> stages = found.stages;
  for (PartitionStage& stage : stages) {
    std::vector<int> operators;
    for (const int op : stage.operators) {
      const std::vector<int>& members = coarse.members[at(op)];
      operators.insert(operators.end(), members.begin(), members.end());
    }
    stage.operators = std::move(operators);
  }
  return settle(problem, std::move(stages));
}

}  // namespace stagecraft::graphpipe
