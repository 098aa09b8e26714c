#include "stagecraft/examples/costs/cost_graph.h"

#include <utility>

namespace stagecraft::examples {
namespace {

constexpr double kBytes = 4;  // of a number
constexpr double kHeld = 4;   // copies of a parameter: itself, its gradient and two moments
constexpr int kManySamples = 1024;

}  // namespace

int CostGraph::add(std::string name,
                   std::vector<int> reads,
                   const Shape& shape,
                   double parameters) {
  OperatorCost made{.id = static_cast<int>(operators_.size()), .name = std::move(name)};
  for (const int producer : reads) {
    made.reads.push_back({producer, 0, shapes_[static_cast<std::size_t>(producer)].output});
  }
  if (parameters > 0) {
    made.parameters.push_back(made.name + ".weight");
    parameters_.push_back(
        {made.parameters.front(), parameters * kBytes, parameters * kBytes * kHeld});
  }
  operators_.push_back(std::move(made));
  shapes_.push_back(shape);
  shapes_.back().trains = parameters > 0;
  return operators_.back().id;
}

int CostGraph::linear(
    std::string name, std::vector<int> reads, double rows, double in, double out) {
  return add(std::move(name),
             std::move(reads),
             {.rows = rows,
              .flops = 2 * in * out,
              .kept = rows * in * kBytes,
              .output = rows * out * kBytes},
             in * out + out);
}

int CostGraph::attention(
    std::string name, std::vector<int> reads, double rows, double width, int heads) {
  return add(std::move(name),
             std::move(reads),
             {.rows = rows,
              .flops = 8 * width * width + 4 * rows * width,
              .kept = (5 * rows * width + heads * rows * rows) * kBytes,
              .output = rows * width * kBytes},
             4 * width * width);
}

int CostGraph::embedding(std::string name, double rows, double table_rows, double width) {
  return add(std::move(name),
             {},
             {.rows = rows,
              .moved = 2 * rows * width * kBytes,
              .kept = rows * kBytes,
              .output = rows * width * kBytes},
             table_rows * width);
}

int CostGraph::concat(std::string name, std::vector<int> reads, double rows, double width) {
  return add(std::move(name),
             std::move(reads),
             {.rows = rows, .moved = 2 * rows * width * kBytes, .output = rows * width * kBytes},
             0);
}

std::vector<OperatorCost> CostGraph::operators_on(int samples) const {
  std::vector<OperatorCost> made = operators_;
  for (std::size_t i = 0; i < made.size(); ++i) {
    const Shape& shape = shapes_[i];
    const double rows = shape.flops > 0 ? samples * shape.rows + device_.half_rows : 0;
    made[i].forward = rows * shape.flops / device_.rate +
                      samples * shape.moved / device_.memory_rate + device_.launch;
    made[i].backward_input = made[i].reads.empty() ? 0 : made[i].forward;
    made[i].backward_weight = shape.trains ? made[i].forward : 0;
    made[i].kept = samples * shape.kept;
    made[i].output = samples * shape.output;
    for (OperatorRead& read : made[i].reads) {
      read.bytes *= samples;
    }
  }
  return made;
}

Costs CostGraph::take() && {
  Costs costs;
  costs.device.name = device_.name;
  costs.links.usual = device_.link;
  costs.operators = operators_on(1);
  costs.operators_at.emplace(kManySamples, operators_on(kManySamples));
  costs.parameters = std::move(parameters_);
  return costs;
}

}  // namespace stagecraft::examples
