/// BlockPass: calls of a trace computed together, a block of rows after the other, so that what
/// they hand to each other stays in cache.
///
/// FB-1: a block is computed by the kernels, and in the order of arithmetic, of whole tensors; a
///       call whose bits depend on where an element lies is taken only where blocks begin at whole
///       vectors and elements lie in the order of the blocks.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/fuse/block_domain.h"
#include "stagecraft/compiler/fuse/block_operators.h"
#include "stagecraft/compiler/fuse/trace.h"

namespace stagecraft {

/// Whether a pass over the domain can compute the call. Keeps FB-1.
[[nodiscard]] bool fits(const Trace& trace, const TracedCall& call, const BlockDomain& domain);

class BlockPass {
 public:
  /// `calls`: by their numbers, in order. `kept`: what is read behind the pass.
  /// Requires: all of them fit the domain, and no view is kept.
  BlockPass(const Trace& trace,
            const std::vector<std::size_t>& calls,
            std::vector<TracedValue> kept,
            BlockDomain domain);

  /// Computes on what is in `values`, and puts there what is kept. With LibTorch's threads.
  void run(std::vector<at::Tensor>& values) const;

  [[nodiscard]] std::size_t size() const { return steps_.size(); }

 private:
  /// Where a value lies: in a tensor of the run, or in scratch memory.
  struct Place {
    TensorFacts facts;        ///< of the whole value
    TracedValue tensor = -1;  ///< that has it; -1 in scratch
    std::size_t slot = 0;     ///< there
    TracedValue base = -1;    ///< of a view: of which value
    std::int64_t offset = 0;  ///< where it begins: elements from there
  };
  struct Step {
    const BlockOperator* op = nullptr;
    TracedCall call;

    [[nodiscard]] TracedValue result() const { return call.results.front(); }
  };
  class Bench;

  void place_operands(const Trace& trace, const TracedCall& call);
  void place_views(const Trace& trace, const TracedCall& call);
  void assign_slots();
  [[nodiscard]] const Place& at(TracedValue value) const { return *places_[slot_of(value)]; }
  [[nodiscard]] static std::size_t slot_of(TracedValue value) {
    return static_cast<std::size_t>(value);
  }
  /// The value that a view, or a view of one, is of.
  [[nodiscard]] TracedValue root_of(TracedValue value) const;
  void run_blocks(const std::vector<at::Tensor>& values,
                  std::int64_t begin,
                  std::int64_t end) const;

  BlockDomain domain_;
  std::vector<TracedValue> kept_;
  std::vector<Step> steps_;
  std::vector<std::optional<Place>> places_;  // by value
  std::vector<std::int64_t> slots_;           // bytes of a row of each
};

}  // namespace stagecraft
