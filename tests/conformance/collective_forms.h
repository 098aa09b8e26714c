/// Holds the forms of the collectives that have to keep the contract: each makes the members of a
/// new network. collective_conformance_test.cc runs the contract on each.
#pragma once

#include <memory>
#include <string_view>

#include "stagecraft/futures/collective/transport_collective.h"
#include "stagecraft/tests/conformance/collective_conformance.h"
#include "stagecraft/tests/conformance/transport_forms.h"

namespace stagecraft {

struct CollectiveForm {
  std::string_view name;
  Members (*members)(int ranks);
};

/// TransportCollective on the ends of a network of transport_forms.h.
template <Endpoints (*kEnds)(int ranks)>
Members over_transport(int ranks) {
  Members members;
  for (const std::shared_ptr<Transport>& end : kEnds(ranks).ranks) {
    const auto board = std::make_shared<WaitBoard>();
    members.push_back({end, board, std::make_shared<TransportCollective>(end, board)});
  }
  return members;
}

/// A new form is one more row.
inline constexpr CollectiveForm kCollectiveForms[] = {
    {"over a transport in one process", over_transport<in_one_process>},
    {"over transports here and elsewhere", over_transport<here_and_elsewhere>},
    {"over shared memory", over_transport<over_shared_memory>}};

}  // namespace stagecraft
