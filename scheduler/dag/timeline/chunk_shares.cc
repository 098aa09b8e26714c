#include "stagecraft/scheduler/dag/timeline/chunk_shares.h"

#include <algorithm>
#include <cstddef>

namespace stagecraft {
namespace {

/// Returns the model's stage of a stage of the DAG: that of the first copy (SG-3).
StageId first_copy(const StageGraph& graph, StageId stage) {
  for (int step = 1; step < graph.replicas(); ++step) {
    for (const auto& [before, after] : graph.replica_pairs()) {
      if (after == stage.value) {
        stage = StageId(before);
        break;
      }
    }
  }
  return stage;
}

/// Returns the operators of a stage if they have the names of its chunks' operators; else none.
std::vector<const OperatorCost*> operators_of(const DagSource& source,
                                              StageId stage,
                                              const Costs& costs) {
  const StageId in_model = first_copy(source.graph, stage);
  std::vector<const OperatorCost*> found;
  for (const OperatorCost& cost : costs.operators) {
    if (cost.stage == in_model) {
      found.push_back(&cost);
    }
  }
  std::size_t place = 0;
  for (const DagChunk& chunk : source.chunks[stage.index()]) {
    for (const std::string& name : chunk.operators) {
      if (place == found.size() || found[place]->name != name) {
        return {};
      }
      ++place;
    }
  }
  return place == found.size() ? found : std::vector<const OperatorCost*>();
}

}  // namespace

double ChunkShares::Times::of(CellKind kind) const {
  switch (kind) {
    case CellKind::Forward:
      return forward;
    case CellKind::BackwardInput:
      return input;
    case CellKind::BackwardWeight:
      return weight;
    default:
      return input + weight;
  }
}

ChunkShares::ChunkShares(const DagSource& source, const Costs& costs) {
  for (StageId stage(0); stage.value < source.graph.size(); ++stage.value) {
    const std::vector<DagChunk>& chunks = source.chunks[stage.index()];
    std::vector<Times>& times = stages_.emplace_back(chunks.size());
    const std::vector<const OperatorCost*> operators = operators_of(source, stage, costs);
    if (operators.empty()) {
      continue;
    }
    // Without an input half, the weight half does all.
    const bool halves = source.graph.needs_input_grad(stage);
    auto next = operators.begin();
    for (std::size_t c = 0; c < chunks.size(); ++c) {
      for (std::size_t i = 0; i < chunks[c].operators.size(); ++i, ++next) {
        times[c].forward += (*next)->forward;
        (halves ? times[c].input : times[c].weight) += (*next)->backward_input;
        times[c].weight += (*next)->backward_weight;
      }
    }
  }
}

double ChunkShares::of(StageId stage, int chunk, CellKind kind) const {
  const std::vector<Times>& chunks = stages_[stage.index()];
  double sum = 0;
  for (const Times& times : chunks) {
    sum += times.of(kind);
  }
  return sum > 0 ? chunks[static_cast<std::size_t>(chunk)].of(kind) / sum
                 : 1.0 / static_cast<double>(chunks.size());
}

}  // namespace stagecraft
