/// CostGraph makes costs of a model that nobody has built, from its shapes: operators with the
/// times and bytes that a device of a stated rate would have.
///
///     CostGraph graph({.rate = 12e12});
///     const int hidden = graph.linear("up", {}, 1, 1024, 4096);
///     graph.linear("down", {hidden}, 1, 4096, 1024);
///     const Costs costs = std::move(graph).take();
///
/// An operator of F floating point operations per row (2 for each product and sum) takes (rows +
/// half_rows) F / rate + launch: a device has half its rate at `half_rows` rows. A backward takes
/// the same time once toward its input and once toward its parameters. Numbers have 4 bytes. A
/// parameter is held 4 times, with its gradient and two moments. Planners, their benchmarks and
/// examples use it. It does not use LibTorch. It is a value.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/scheduler/costs/costs.h"

namespace stagecraft::examples {

/// CostDeviceModel is a device with 12 of the 15.7 TFLOP/s that a V100 has in single precision, and
/// EDR InfiniBand.
struct CostDeviceModel {
  std::string name = "12 TFLOP/s, half of it at 256 rows, 12.5 GB/s between devices";
  double rate = 12e12;         ///< floating point operations per second
  double half_rows = 256;      ///< rows at which it has half of that rate
  double launch = 10e-6;       ///< seconds of any operator, in addition to its work
  double memory_rate = 900e9;  ///< bytes per second, for data that is moved and not computed
  Link link = {.latency = 5e-6, .bandwidth = 12.5e9};
};

class CostGraph {
 public:
  explicit CostGraph(CostDeviceModel device = {}) : device_(std::move(device)) {}

  /// Adds an operator that reads the results of `reads` (the batch, if that is empty) and returns
  /// its id, like the next three functions. `rows`: per sample.
  int linear(std::string name, std::vector<int> reads, double rows, double in, double out);
  /// Adds self-attention with its four projections over all rows of a sample.
  int attention(std::string name, std::vector<int> reads, double rows, double width, int heads);
  /// Adds a lookup of `rows` rows of a table.
  int embedding(std::string name, double rows, double table_rows, double width);
  /// Adds a concatenation of results.
  int concat(std::string name, std::vector<int> reads, double rows, double width);

  /// Returns the costs on microbatches of one sample and of 1024. Planners interpolate and
  /// extrapolate linearly between these.
  [[nodiscard]] Costs take() &&;

 private:
  struct Shape {
    double rows = 0, flops = 0, moved = 0;  ///< per sample; flops per row
    double kept = 0, output = 0;            ///< bytes per sample
    bool trains = false;
  };
  int add(std::string name, std::vector<int> reads, const Shape& shape, double parameters);
  [[nodiscard]] std::vector<OperatorCost> operators_on(int samples) const;

  CostDeviceModel device_;
  std::vector<OperatorCost> operators_;  // names, reads, parameters
  std::vector<Shape> shapes_;
  std::vector<ParameterCost> parameters_;
};

}  // namespace stagecraft::examples
