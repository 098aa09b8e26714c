/// Transport moves tensors from one rank to another. One object is one rank's end of a transport.
///
/// A stage's executor sends and receives through it, and so does the driver (as `kDriver`). The
/// implementation depends only on where the peers are. Every method may be called from any thread.
/// tests/conformance/transport_conformance.h proves the contract for every implementation:
///
/// T-1 order: tensors of equal (sender, tag) are received in the order in which they were sent.
///     Different tags have no order.
/// T-2 ownership: send hands the tensor over. The receiver may get the same storage, so the sender
///     neither writes to it afterwards nor relies on keeping it.
/// T-3 exactly once: every receive completes once, with a tensor or an error; every tensor reaches
///     at most one receive.
/// T-4 close fails all pending receives, and every later call of that end.
/// T-5 epoch: after advance(p, e) no tensor and no receive of plan p and an epoch before e is kept
///     or accepted; other plans are not affected.
/// T-6 no lock of the transport is held while a future completes, so its callbacks may call the
///     transport.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/ids.h"
#include "stagecraft/futures/future.h"
#include "stagecraft/futures/transport/route.h"
#include "stagecraft/futures/transport/tag.h"

namespace stagecraft {

class Transport {
 public:
  Transport(const Transport&) = delete;
  Transport(Transport&&) = delete;
  Transport& operator=(const Transport&) = delete;
  Transport& operator=(Transport&&) = delete;
  virtual ~Transport() = default;

  [[nodiscard]] virtual Rank self() const = 0;

  /// Hands `tensor` to `to` and returns without waiting. A peer that has closed, or has advanced
  /// beyond the tag's epoch, drops the tensor and counts it as refused.
  /// Errors: TransportClosed if this end is closed; TransportRefused for a rank that is no peer or
  /// a tensor that is undefined.
  virtual void send(Rank to, const Tag& tag, at::Tensor tensor) = 0;

  /// Works like send, and `to` may read lendable() memory where it lies. The caller changes or
  /// frees that memory only after `to` has said that it has read it, or when the epoch is over.
  virtual void lend(Rank to, const Tag& tag, at::Tensor tensor) {
    send(to, tag, std::move(tensor));
  }

  /// Returns a flat tensor for lend(), zeroed: in memory that the processes of this host share, if
  /// this transport has some left.
  [[nodiscard]] virtual at::Tensor lendable(std::int64_t elements, at::ScalarType dtype) {
    return at::zeros({elements}, dtype);
  }

  /// Returns a name of the rank's host, which is the same on all ends of the network.
  /// Errors: TransportRefused for a rank that is no peer.
  [[nodiscard]] virtual std::string host_of(Rank /*rank*/) const { return "this host"; }

  /// Returns how tensors get to `to`. Shared memory is set up during the first sends.
  /// Errors: TransportRefused for a rank that is no peer.
  [[nodiscard]] virtual Route route_to(Rank to) const = 0;

  /// Returns whether `to` gets the sender's own storage, on any device. Tensors for other ranks
  /// must be in the host's memory. Errors: those of route_to().
  [[nodiscard]] virtual bool hands_over(Rank to) const = 0;

  /// Asks for one tensor, before or after it arrives. If it is already here, the future completes
  /// at once.
  /// Errors: TransportRefused (thrown) for a rank that is no peer. In the future: TransportClosed;
  /// WorkerAborted if the tag's epoch is over for its plan.
  [[nodiscard]] virtual Future<at::Tensor> receive(Rank from, const Tag& tag) = 0;

  /// Ends every epoch of `plan` before `current`: their pending receives fail with WorkerAborted
  /// because of `why`, their stored tensors are dropped now, and later ones are refused on arrival.
  /// A `current` that is not newer than the plan's present epoch changes nothing, so aborts may
  /// arrive twice and out of order.
  virtual void advance(PlanId plan, Epoch current, const Error& why) = 0;

  /// Throws the error that a receive of this epoch would fail with; returns if there is none.
  /// Errors: TransportClosed, WorkerAborted. Cost: usually one atomic read.
  virtual void require_current(PlanId plan, Epoch epoch) const = 0;

  /// Returns how many tensors arrived for an epoch that was over, or after close.
  [[nodiscard]] virtual std::uint64_t refused() const = 0;

  /// Returns the bytes that have arrived here and that no receive has requested yet.
  [[nodiscard]] virtual std::int64_t bytes_waiting() const = 0;

  /// Closes this end: pending receives fail with TransportClosed because of `why`, stored tensors
  /// are dropped. A second close changes nothing.
  virtual void close(const Error& why) = 0;

 protected:
  Transport() = default;
};

}  // namespace stagecraft
