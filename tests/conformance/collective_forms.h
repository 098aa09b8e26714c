/// Holds the forms of the collectives that have to keep the contract: each makes the members of a
/// new network. collective_conformance_test.cc runs the contract on each.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "stagecraft/futures/collective/transport_collective.h"
#include "stagecraft/futures/transport/forwarding_transport.h"
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

/// HostedTransport says that ranks 0 and 1 are on one host, 2 and 3 on the next, and so on.
class HostedTransport final : public ForwardingTransport {
 public:
  using ForwardingTransport::ForwardingTransport;
  [[nodiscard]] std::string host_of(Rank rank) const override {
    return std::to_string(rank.value / 2);
  }
};

inline Endpoints on_several_hosts(int ranks) {
  Endpoints ends = in_one_process(ranks);
  for (std::shared_ptr<Transport>& end : ends.ranks) {
    end = std::make_shared<HostedTransport>(end);
  }
  return ends;
}

/// A new form is one more row.
inline constexpr CollectiveForm kCollectiveForms[] = {
    {"over a transport in one process", over_transport<in_one_process>},
    {"over transports here and elsewhere", over_transport<here_and_elsewhere>},
    {"over shared memory", over_transport<over_shared_memory>},
    {"over several hosts", over_transport<on_several_hosts>}};

}  // namespace stagecraft
