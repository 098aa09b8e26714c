/// Carrier is the sending half of a transport: it brings tensors into the mailbox of a peer. A
/// Mailbox is the receiving half.
///
/// There is a form for each relation between two places: HandOver within a process,
/// PortCarrier between processes. choose_carrier (routing/transport_choice.h) chooses one for each
/// peer. Any thread may call a carrier.
#pragma once

#include <utility>

#include <ATen/core/Tensor.h>

#include "stagecraft/base/ids.h"
#include "stagecraft/futures/transport/route.h"
#include "stagecraft/futures/transport/tag.h"

namespace stagecraft {

class Carrier {
 public:
  Carrier(const Carrier&) = delete;
  Carrier(Carrier&&) = delete;
  Carrier& operator=(const Carrier&) = delete;
  Carrier& operator=(Carrier&&) = delete;
  virtual ~Carrier() = default;

  /// Brings `tensor` into the mailbox of `to` and returns without waiting. Keeps T-1 and T-2.
  /// Requires: `to` is a peer in the place of this carrier; `tensor` is defined.
  /// Errors: TransportRefused for a tensor that this form cannot carry, or a peer out of reach.
  virtual void carry(Rank from, Rank to, const Tag& tag, at::Tensor tensor) const = 0;

  /// Works like carry, for Transport::lend.
  virtual void lend(Rank from, Rank to, const Tag& tag, at::Tensor tensor) const {
    carry(from, to, tag, std::move(tensor));
  }

  /// Returns how the tensors get there.
  [[nodiscard]] virtual Route route() const = 0;

 protected:
  Carrier() = default;
};

}  // namespace stagecraft
