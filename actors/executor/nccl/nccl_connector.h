/// NcclConnector joins this rank's device with those of other ranks, for an epoch.
///
/// A rank on an accelerator has one, for its plan thread. NcclLinks and NcclCollective use it.
/// NJ-1: the communicators of an epoch end with it, on all members: work whose other end was given
///       up may hold its stream for ever.
/// NJ-2: all ranks join in one order, at the start of a step. NCCL connects in the first call with
///       a peer, which may hold the host, so a communicator makes one of each kind then. All else
///       is connected when it joins (connect_nccl_early()).
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stagecraft/actors/executor/nccl/nccl.h"
#include "stagecraft/futures/collective/job_thread.h"
#include "stagecraft/futures/transport/transport.h"
#include "stagecraft/futures/wait_board.h"

namespace stagecraft {

class NcclConnector {
 public:
  /// `patience`: for the peers.
  NcclConnector(const c10::Device& place,
                std::shared_ptr<Transport> transport,
                std::shared_ptr<WaitBoard> board,
                std::chrono::milliseconds patience);
  ~NcclConnector();
  NcclConnector(const NcclConnector&) = delete;
  NcclConnector& operator=(const NcclConnector&) = delete;

  /// `step`: the tag of the step that begins. A new epoch ends all communicators. Errors:
  /// DeviceFailed.
  void begin(const Tag& step);
  [[nodiscard]] std::optional<Epoch> epoch() const { return epoch_; }
  [[nodiscard]] const c10::Device& place() const { return place_; }
  /// Returns the current stream of the device.
  [[nodiscard]] c10::Stream stream() const;

  /// Throws the error that has ended the epoch, if one has: an abort ends calls as if they had been
  /// made.
  void require_current() const { transport_->require_current(tag_.plan, *epoch_); }

  /// Joins the ranks, whose positions are their numbers as members. All of them agree to do without
  /// if one of them has no NCCL or is in the process of another one, or if two share a device: then
  /// this returns null.
  /// Requires: begin(); this rank is one of them.
  /// Errors: ClusterTimeout if a peer does not join; WireFormat; DeviceFailed; the transport's own.
  [[nodiscard]] std::shared_ptr<Nccl::Communicator> join(const std::vector<Rank>& ranks);

  /// Makes a call of the communicator, and waits until NCCL has done it. `peers`: whom it may need.
  /// Errors: ClusterTimeout, DeviceFailed, WorkerAborted.
  template <class Call>
  void make(Nccl::Communicator& end, const std::vector<Rank>& peers, Call&& call) {
    of_epoch(std::forward<Call>(call));
    settle(end, peers);
  }

  /// Ends all communicators; the next step has to be of a later epoch. Called when a step fails
  /// while a peer may not make its part of a call.
  void abort() noexcept;

 private:
  class Ends;  ///< what an abort ends, from another thread

  /// Runs a call of NCCL, which fails in an epoch that is over for no reason of its own.
  template <class Call>
  auto of_epoch(Call&& call) const {
    try {
      return call();
    } catch (...) {
      require_current();
      throw;
    }
  }
  void settle(Nccl::Communicator& end, const std::vector<Rank>& peers);
  void say(const std::vector<Rank>& peers, const std::string& text);
  [[nodiscard]] std::string hear(Rank from);
  [[nodiscard]] Nccl::Id heard_id(Rank from);

  const c10::Device place_;
  const std::shared_ptr<Transport> transport_;
  const std::shared_ptr<WaitBoard> board_;
  const std::chrono::milliseconds patience_;
  const std::shared_ptr<JobThread> aborts_;
  std::shared_ptr<Nccl> nccl_;  ///< from the first step on; null if this machine has none
  std::string own_name_;        ///< of the device; empty: this rank has no NCCL
  Tag tag_;                     ///< of what is said when ranks join
  std::optional<Epoch> epoch_;  ///< of the communicators
  Future<at::Tensor> end_of_epoch_;
  std::shared_ptr<Ends> ends_;  ///< those of the epoch
};

}  // namespace stagecraft
