/// Program: a compiled model. A cheap handle to immutable data; made by `compile`, read by planners
/// and trainers.
///
/// PR-1: a Program owns copies of the module's parameters and buffers, as they were when compiled;
///      trainers copy them.
/// PR-2: there is no empty Program: moving one copies the handle.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/scheduler/stage_graph.h"

namespace stagecraft {

struct CompiledProgram;

/// One tensor of a batch: split over the microbatches in dim 0, or given whole to each.
struct BatchTensor {
  at::Tensor tensor;
  bool replicated = false;

  BatchTensor(at::Tensor t)
      : tensor(std::move(t)) {
  }  // NOLINT(google-explicit-constructor): a batch is a list of tensors
  BatchTensor(at::Tensor t, bool whole) : tensor(std::move(t)), replicated(whole) {}
};

/// Every microbatch gets all of `tensor`.
[[nodiscard]] inline BatchTensor replicated(at::Tensor tensor) {
  return {std::move(tensor), true};
}

using Batch = std::vector<BatchTensor>;

class Program {
 public:
  /// Errors: UsageArgument for null.
  explicit Program(std::shared_ptr<const CompiledProgram> compiled);
  Program(const Program&) = default;  // keeps PR-2: with these there is no move
  Program& operator=(const Program&) = default;
  ~Program() = default;

  /// The stages, who feeds whom, and which of them have a backward.
  [[nodiscard]] const StageGraph& stage_graph() const;
  [[nodiscard]] int microbatches() const;
  /// Names of the parameters, in the module's order.
  [[nodiscard]] std::vector<std::string> parameter_names() const;
  /// Stages, what crosses between them, bytes per edge, parameters per stage. For people.
  [[nodiscard]] std::string explain() const;
  /// The captured operators, one line each.
  [[nodiscard]] std::string graph_text() const;

  [[nodiscard]] const CompiledProgram& compiled() const { return *compiled_; }
  [[nodiscard]] const std::shared_ptr<const CompiledProgram>& shared() const { return compiled_; }

 private:
  std::shared_ptr<const CompiledProgram> compiled_;
};

}  // namespace stagecraft
