/// Passes: how some values of a trace are computed from others: fused passes, and between them the
/// operators that no pass takes, one by one.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/fuse/block_domain.h"
#include "stagecraft/compiler/fuse/block_pass.h"
#include "stagecraft/compiler/fuse/fuse_report.h"
#include "stagecraft/compiler/fuse/trace.h"

namespace stagecraft {

class Passes {
 public:
  Passes() = default;
  /// What computes `wanted` of `trace` when `available` is there; without a domain operator by
  /// operator.
  Passes(const Trace& trace,
         const std::optional<BlockDomain>& domain,
         const std::vector<TracedValue>& available,
         const std::vector<TracedValue>& wanted);

  /// False where something could be made of nothing that is available.
  [[nodiscard]] bool is_complete() const { return complete_; }

  /// Computes what is wanted, in place of what is available. Of `values` that is all there is
  /// afterwards.
  void run(std::vector<at::Tensor>& values) const;

  [[nodiscard]] PassCounts counts() const;
  /// Names of the operators that no pass computes.
  [[nodiscard]] std::vector<std::string> alone() const;

 private:
  struct Step {
    std::variant<BlockPass, TracedCall> work;
    std::vector<TracedValue> last_uses;
  };
  class Builder;

  std::vector<Step> steps_;
  bool complete_ = true;
};

}  // namespace stagecraft
