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
/// NL-4: the links of an epoch end with it, on both ranks: a transfer whose other end was given up
///       may hold its stream for ever.
/// NL-5: ranks connect at the start of a step, each pair in the order of its ranks, with a transfer
///       of one byte. NCCL makes a connection in the first transfer and may hold the host there.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/nccl/nccl.h"
#include "stagecraft/futures/collective/job_thread.h"
#include "stagecraft/futures/transport/transport.h"
#include "stagecraft/futures/wait_board.h"

namespace stagecraft {

/// From the first rank to the second.
using RankPair = std::pair<Rank, Rank>;

class NcclLinks {
 public:
  /// `patience`: for the peers.
  NcclLinks(const c10::Device& place,
            std::shared_ptr<Transport> transport,
            std::shared_ptr<WaitBoard> board,
            std::chrono::milliseconds patience);
  ~NcclLinks();
  NcclLinks(const NcclLinks&) = delete;
  NcclLinks& operator=(const NcclLinks&) = delete;

  /// Connects the pairs of this rank that are not yet connected in the step's epoch. Both ends of a
  /// pair agree to do without a link if one of them has no NCCL, or if they share a device.
  /// `step`: the tag of the step; all ranks call this in the same steps.
  /// Errors: ClusterTimeout if a peer does not; DeviceFailed; the transport's own.
  void connect(const Tag& step, const std::vector<RankPair>& pairs);

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

  /// Ends all links; the next step has to be of a later epoch. Called when a step fails while a
  /// peer may not issue the other end of a transfer.
  void abort() noexcept;

 private:
  struct Link {
    std::shared_ptr<Nccl::Communicator> end;  ///< null: this pair goes through the host's memory
    std::int64_t given = 0;                   ///< transfers so far
  };
  class Ends;  ///< what an abort ends, from another thread

  template <class Call>
  auto of_epoch(Call&& call) const;
  void begin_epoch(const Tag& step);
  [[nodiscard]] Link connected(const RankPair& pair);
  void settle(Nccl::Communicator& end, Rank peer);
  void say(Rank to, const std::string& text);
  [[nodiscard]] std::string hear(Rank from);
  [[nodiscard]] c10::Stream stream() const;

  const c10::Device place_;
  const std::shared_ptr<Transport> transport_;
  const std::shared_ptr<WaitBoard> board_;
  const std::chrono::milliseconds patience_;
  const std::shared_ptr<JobThread> aborts_;
  std::shared_ptr<Nccl> nccl_;  ///< from the first connection on; null if this machine has none
  std::string own_name_;        ///< of the device; empty: this rank has no NCCL
  Tag tag_;                     ///< of what is said when ranks connect
  std::optional<Epoch> epoch_;  ///< of the links
  Future<at::Tensor> end_of_epoch_;
  std::shared_ptr<Ends> ends_;  ///< those of the epoch
  std::map<RankPair, Link> links_;
};

}  // namespace stagecraft
