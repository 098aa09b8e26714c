/// NcclLinks moves tensors between the devices of ranks in different processes.
///
/// A rank on an accelerator has one, for its plan thread. A transfer is a ticket, which the
/// transport carries, and the tensor itself, which NCCL moves:
///
///     sender    give NCCL the send    --- ticket: 5th, float32 [4, 256] --->
///     receiver  take the ticket, make the tensor, give NCCL the receive
///
/// Plans with overlap groups do without, as their ranks choose the order of transfers as they go.
/// NL-1: each ordered pair of ranks has a communicator of its own, because the transfers of one
///       happen in one order.
/// NL-2: a receive is given after its send: no device holds a kernel that waits for one that its
///       sender has not issued. What the plan's streams then wait for is proved by P-10.
/// NL-3: a ticket says which of its pair it is, so two plans that do not fit are an error and not
///       wrong numbers (NC-1).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/nccl/nccl_connector.h"

namespace stagecraft {

/// From the first rank to the second.
using RankPair = std::pair<Rank, Rank>;

class NcclLinks {
 public:
  /// `self`: this rank. The connector outlives it.
  NcclLinks(Rank self, NcclConnector& connector) : self_(self), connector_(connector) {}

  /// Connects the pairs of this rank, ascending, that are not yet connected in the connector's
  /// epoch. Both ends of a pair agree to do without a link where they cannot join.
  /// Requires: all ranks call this in the same steps. Errors: those of NcclConnector::join.
  void connect(const std::vector<RankPair>& pairs);

  /// Return whether transfers with the peer go by a link.
  [[nodiscard]] bool sends_to(Rank peer) const;
  [[nodiscard]] bool receives_from(Rank peer) const;

  /// Gives the current stream a send of the tensor. Returns the ticket.
  /// Requires: the tensor is kept for that stream (Device::keep_for).
  /// Errors: DeviceFailed, WorkerAborted.
  [[nodiscard]] at::Tensor send(Rank to, const at::Tensor& tensor);
  /// Gives the current stream the receive. Returns the tensor, whose memory is of that stream.
  /// Errors: WireFormat for a ticket that nobody sends; PlanInvalid for that of another transfer;
  /// DeviceFailed, WorkerAborted.
  [[nodiscard]] at::Tensor receive(Rank from, const at::Tensor& ticket);

 private:
  struct Link {
    std::shared_ptr<Nccl::Communicator> end;  ///< null: this pair goes through the host's memory
    std::int64_t given = 0;                   ///< transfers so far
  };

  [[nodiscard]] Link connected(const RankPair& pair);

  const Rank self_;
  NcclConnector& connector_;
  std::optional<Epoch> epoch_;  ///< of the links
  std::map<RankPair, Link> links_;
};

}  // namespace stagecraft
