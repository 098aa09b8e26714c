/// Holds what the driver and the workers rely on when actors of different processes talk, as a list
/// of cases for every network between actors: CAF's over TLS, as the product opens it
/// (actors/launch/port/control_port.h), and the simulated one (network.h).
///
/// NP-1: what one process sends another arrives in the order in which it was sent, whichever of its
///       actors sent it, if each had heard of the sends before its own. What arrives for one actor
///       is handled in this order.
/// NP-2: the end of an actor whose process lives is told once for each monitor, with its reason,
///       after all that the actor has sent. News of its process's other actors may come before.
/// NP-3: the loss of a process, because it was killed, was silent for too long or was cut off, is
///       told once for each monitor, as `remote_link_unreachable`. What it sent arrives up to some
///       instant, all of it before the news, and nothing after.
/// NP-4: what is sent to an actor that is known to have ended is dropped. A request gets no answer:
///       it fails at its limit or before. A new monitor is told at once.
/// NP-5: the loss of a process does not end requests that wait for it. They fail at their limit, so
///       whoever asks monitors too (`ask`).
/// NP-6: a handle of a lost process stays so. Its successor has other handles; nothing goes to the
///       one by a handle of the other.
/// NP-7: a request fails at its limit, and an answer that comes later is dropped.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "stagecraft/tests/simulate/seam/link_ends.h"

namespace stagecraft::simulation {

/// A process, and how it is lost. "Here" is the process of the case, "there" the other one.
struct LinkUnderTest {
  caf::actor_system& here;
  /// Starts a process. Returns its root as actors here know it. The first is lost before a second
  /// is started.
  std::function<caf::actor(const caf::actor& listener, Notes& notes)> start;
  std::function<void()> kill;
  /// Ends the connection to the process, which lives. Empty: not possible.
  std::function<void()> cut;
  /// Carries nothing more, while the connection stays open. Empty: likewise.
  std::function<void()> hold;
  std::function<void()> stop, go_on;  ///< of the process; empty: likewise
  /// How long nothing is heard of a process that is given up.
  std::chrono::milliseconds silence{0};
};

struct LinkCase {
  std::string name;  ///< a sentence, with the promise that it exercises
  void (*run)(LinkUnderTest&);
};

[[nodiscard]] const std::vector<LinkCase>& link_cases();

}  // namespace stagecraft::simulation
