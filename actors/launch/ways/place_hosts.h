/// PlaceHosts says on which host the worker of each place of a fleet runs, and which host is next
/// for a place whose host does not take another worker.
///
///   the place's host --> spare hosts --> hosts of the list --> any host with one worker
///                        with room       with room             more than its slots
///
/// workers_by_ssh owns it. A host has room for a worker while fewer places than its slots are on
/// it. A spare has the slots of the host of the list that has most, because it stands in for any.
/// PH-1: places move only if there are spares, and only from a host that did not take a worker.
/// PH-2: a host that did not take a worker is not asked again, for any place, while another one is
///       left.
/// Any thread may use it. Its mutex guards the hosts of the places, because the fleet replaces
/// workers on one thread while others name the hosts of places. It is never held while code of
/// others runs.
#pragma once

#include <cstddef>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "stagecraft/actors/launch/network/hosts.h"

namespace stagecraft {

/// Checks the names. Errors: UsageArgument for a name that is no host's, for a spare that is also
/// in the list, and for one that is there twice.
void check_spares(const std::vector<Host>& hosts, const std::vector<Host>& spares);

class PlaceHosts {
 public:
  /// Requires: check_spares() finds nothing.
  PlaceHosts(const std::vector<Host>& hosts, const std::vector<Host>& spares);

  /// Tells that the fleet has this many places; they never become fewer.
  /// Requires: the slots of the list suffice.
  void use(int places);

  /// Returns the host of a place, with the worker program and the environment of its line. A spare
  /// has those of the line on which the place began. None if the list has fewer slots.
  [[nodiscard]] std::optional<Host> host_of(int place) const;

  /// Prepares a worker in a place that has none now. Moves the place to the next host if its own
  /// did not take a worker. Returns where it has moved to: "node-c, a spare"; nothing if it stays.
  std::optional<std::string> prepare(int place);

  /// Notes that the place's host has not taken the worker that was prepared. Returns whether
  /// another host is left. If none is, every host may be asked again, and the place begins anew
  /// with the host that the list gives it.
  [[nodiscard]] bool give_up(int place);

 private:
  struct Seat {
    std::size_t host = 0;    ///< index in hosts_
    std::size_t listed = 0;  ///< the one that the list gives the place
    bool begins_anew = false;
  };

  // The following functions require the mutex.
  [[nodiscard]] Seat& at(int place) { return seats_.at(static_cast<std::size_t>(place)); }
  [[nodiscard]] int workers_on(std::size_t host) const;
  /// Returns the next host for a place whose own has failed.
  [[nodiscard]] std::optional<std::size_t> next_host() const;
  [[nodiscard]] std::string text(std::size_t host) const;

  const std::vector<Host> hosts_;  ///< the list, and then the spares
  const std::size_t listed_;       ///< number of hosts in the list
  mutable std::mutex mutex_;
  std::vector<Seat> seats_;   ///< by place, for all slots of the list
  std::size_t used_ = 0;      ///< number of places of the fleet
  std::vector<bool> failed_;  ///< by host: it did not take a worker
};

}  // namespace stagecraft
