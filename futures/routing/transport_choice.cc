#include "stagecraft/futures/routing/transport_choice.h"

#include <algorithm>

#include "stagecraft/futures/transport/hand_over.h"
#include "stagecraft/futures/transport/zmq/port_carrier.h"

namespace stagecraft {
namespace {

constexpr TransportRow kTransports[] = {
    {.name = "hand-over",
     .reaches = [](const PortAddress& here, const PortAddress& there) { return here == there; },
     .carrier = [](const NetworkHere& here, const PortAddress&) -> std::shared_ptr<const Carrier> {
       return std::make_shared<HandOver>(here.mailboxes);
     }},
    {.name = "data-port",  // the last row, because it reaches every place
     .reaches = [](const PortAddress&, const PortAddress&) { return true; },
     .carrier = [](const NetworkHere& here,
                   const PortAddress& there) -> std::shared_ptr<const Carrier> {
       here.port->admit(there);
       return std::make_shared<PortCarrier>(here.port, here.id, there);
     }},
};

}  // namespace

std::span<const TransportRow> all_transports() {
  return kTransports;
}

const TransportRow& transport_between(const PortAddress& here, const PortAddress& there) {
  return *std::ranges::find_if(kTransports,
                               [&](const TransportRow& row) { return row.reaches(here, there); });
}

std::shared_ptr<const Carrier> choose_carrier(const NetworkHere& here, const PortAddress& there) {
  return transport_between(here.port->address(), there).carrier(here, there);
}

}  // namespace stagecraft
