/// Copies of a small model that divide its experts, and the distance of their weights from those of
/// others.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include <torch/torch.h>

#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/tests/integration/models.h"
#include "stagecraft/tests/integration/trained_copies.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tests::experts {

/// Rounding alone changes a weight by so much in a few steps.
inline constexpr double kBound = 1e-5;
/// That of --verify. Where a gradient is nearly zero, AdamW moves the weight by its rounding.
inline constexpr double kWeightBound = 1e-4;

inline constexpr ModelOptions kExperts{
    .stages = 2, .dropout = 0.2, .statistics = false, .width = 16, .experts = 4};

inline ModelOptions of_stages(int stages) {
  ModelOptions model = kExperts;
  model.stages = stages;
  return model;
}

struct Way {
  std::string builder = "1f1b";
  int devices = 2;
  int copies = 2;
  ReplicateOptions sums = {};
  std::string divided = "EP";
  int parts = 0;  // as in make_execution
};

inline Execution in_copies_of(const Program& program, const Way& way) {
  const Schedule rows = build_schedule(
      way.builder, {.devices = way.devices, .microbatches = kMicrobatches / way.copies});
  return make_execution(program, in_copies(rows, way.copies), way.sums, way.divided, way.parts);
}

/// Returns the largest difference, relative to the larger of 1 and the value; infinite if names or
/// shapes differ.
inline double distance(const StateDict& a, const StateDict& b) {
  if (a.size() != b.size()) {
    UNSCOPED_INFO(a.size() << " and " << b.size() << " tensors");
    return INFINITY;
  }
  double largest = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto& [name, x] = a[i];
    const auto& [other, y] = b[i];
    if (name != other || x.sizes() != y.sizes()) {
      UNSCOPED_INFO(name << " " << x.sizes() << " and " << other << " " << y.sizes());
      return INFINITY;
    }
    const at::Tensor apart = (x - y).abs() / y.abs().clamp_min(1.0);
    largest = std::max(largest, apart.numel() == 0 ? 0.0 : apart.max().item().toDouble());
  }
  return largest;
}

inline StateDict sorted(StateDict dict) {
  std::ranges::sort(dict, {}, [](const auto& named) { return named.first; });
  return dict;
}

}  // namespace stagecraft::tests::experts
