/// Holds the contract of `futures/collective/collective.h` as a list of cases that every form of
/// the collectives has to pass.
///
/// collective_conformance_test.cc runs it for every form in collective_forms.h.
///
/// Most cases play all members on one thread: first all start, then all wait (CL-4).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "stagecraft/futures/collective/collective.h"
#include "stagecraft/futures/transport/transport.h"
#include "stagecraft/futures/wait_board.h"

namespace stagecraft {

/// Holds one rank's side.
struct Member {
  std::shared_ptr<Transport> transport;  ///< its epoch, or its close, ends the operations
  std::shared_ptr<WaitBoard> board;      ///< on which the operations show the ranks they wait for
  std::shared_ptr<Collective> collective;
};

/// Holds all ranks of one new network, which live as long as this does.
using Members = std::vector<Member>;
using MakeMembers = std::function<Members(int ranks)>;

struct CollectiveCase {
  std::string name;  ///< a sentence, with the invariant it exercises
  void (*run)(const MakeMembers&);
};

[[nodiscard]] const std::vector<CollectiveCase>& collective_cases();

}  // namespace stagecraft
