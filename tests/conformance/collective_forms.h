/// Holds the forms of the collectives that have to keep the contract: each makes the members of a
/// new network. collective_conformance_test.cc lists them.
#pragma once

#include <memory>

#include "stagecraft/futures/collective/over_transport.h"
#include "stagecraft/tests/conformance/collective_conformance.h"

namespace stagecraft {

/// TransportCollective on the ends of a form of transport (transport_forms.h).
template <class Form>
struct OverTransport {
  static Members members(int ranks) {
    Members members;
    for (const std::shared_ptr<Transport>& end : Form::ends(ranks).ranks) {
      const auto board = std::make_shared<WaitBoard>();
      members.push_back({end, board, std::make_shared<TransportCollective>(end, board)});
    }
    return members;
  }
};

}  // namespace stagecraft
