/// CutLinks decides which process is ended when tensors do not arrive.
///
/// A fleet makes it for the callbacks of its data port and of its admission. Any thread may use it.
/// It keeps no fleet alive.
/// CUT-1: a process that lost a tensor on its way here is ended, so that its loss is reported by
///        name and no rank waits for the tensor.
/// CUT-2: a process is ended in the same way if its tensors do not reach another process that is
///        alive, or if the driver's tensors do not reach it. A process that is dead is reported by
///        its own end instead.
/// CUT-3: if the driver's own port has failed, all processes are ended for this reason: no tensor
///        reaches the driver any more, and their ranks would wait for it.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "stagecraft/actors/launch/fleet/places.h"
#include "stagecraft/actors/messages/actor_host.h"

namespace stagecraft {

class CutLinks {
 public:
  /// `patience`: longest wait for a process that is asked whether it is there.
  CutLinks(ActorHost& host, std::weak_ptr<Places> places, std::chrono::milliseconds patience)
      : host_(host), places_(std::move(places)), patience_(patience) {}

  /// Handles the report that a tensor of the process with this key was lost on its way here.
  void broke(const std::string& key, const Error& why) const;
  /// Handles the report that tensors from here do not reach the process with this key.
  void cut_from_here(const std::string& key, const Error& why) const;
  /// Handles the failure of the driver's port.
  void port_failed(const Error& why) const;
  /// Handles the report that tensors from the process at `from` do not arrive here.
  void cut_to_here(const caf::node_id& from, const Error& why) const;
  /// Handles the report that tensors from the process at `from` do not reach the process with this
  /// key.
  void cut_between(const caf::node_id& from, const std::string& key, const Error& why) const;

 private:
  /// Ends the worker if `other` answers that it is there.
  void condemn_if_there(const FleetMember& worker,
                        const FleetMember& other,
                        const std::string& why) const;

  ActorHost& host_;
  const std::weak_ptr<Places> places_;
  const std::chrono::milliseconds patience_;
};

}  // namespace stagecraft
