/// Transfers sends and receives a rank's tensors during a step.
///
/// The executor makes one per plan and uses it on its plan thread.
/// TX-1: receives are posted ahead, in the plan's order: a peer's tensor arrives while this rank
///       still computes. Each is taken once, or dropped with the step.
/// TX-2: a wait for a tensor shows the rank for which it waits (WB-1), and is no longer than its
///       patience.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/nccl/nccl_links.h"
#include "stagecraft/actors/executor/setup/bound_plan.h"
#include "stagecraft/futures/transport/transport.h"
#include "stagecraft/futures/wait_board.h"

namespace stagecraft {

/// LocalRead reads an input or label of the step, by its edge and microbatch, once each.
using LocalRead = std::function<at::Tensor(EdgeId, Microbatch)>;

class Transfers {
 public:
  /// Views the plan.
  Transfers(const BoundPlan& plan,
            std::shared_ptr<Transport> transport,
            std::shared_ptr<WaitBoard> board,
            std::chrono::milliseconds patience);

  /// Posts the receives of a step. Their tags are `step` with each transfer's edge and microbatch.
  /// `local`: reads, on demand, what the driver would send; empty: the driver sends it.
  void begin(const Tag& step, LocalRead local = {});

  /// Returns the receive of the instruction at `position`, to see when its tensor has arrived;
  /// invalid if the tensor is read here.
  [[nodiscard]] const Future<at::Tensor>& arrival(std::size_t position) const {
    return received_[position];
  }

  /// Returns whether all receives of the instructions in [begin, end) have arrived.
  [[nodiscard]] bool have_arrived(std::size_t begin, std::size_t end) const;

  /// Waits for the tensor of the instruction at `position`.
  /// Errors: ClusterTimeout if it has not come in time; the transport's own; those of `local`.
  [[nodiscard]] at::Tensor take(std::size_t position);

  void send(std::size_t position, at::Tensor tensor);

  /// Returns the pairs of this rank and the ranks of other processes that the list's transfers
  /// have, ascending.
  [[nodiscard]] const std::vector<RankPair>& far_pairs();

  /// Drops the step's receives.
  void clear();

 private:
  [[nodiscard]] const BoundInstruction& bound(std::size_t position) const {
    return plan_->list[position];
  }
  [[nodiscard]] const Instruction& instruction(std::size_t position) const {
    return *bound(position).instruction;
  }
  [[nodiscard]] Tag tag_of(std::size_t position) const;
  [[nodiscard]] bool is_read_here(std::size_t position) const {
    return local_ && bound(position).peer == kDriver;
  }

  const BoundPlan* plan_;
  std::shared_ptr<Transport> transport_;
  std::shared_ptr<WaitBoard> board_;
  std::chrono::milliseconds patience_;
  Tag step_;
  LocalRead local_;
  std::vector<Future<at::Tensor>> received_;  // by position
  std::optional<std::vector<RankPair>> far_pairs_;
};

}  // namespace stagecraft
