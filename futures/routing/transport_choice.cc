#include "stagecraft/futures/routing/transport_choice.h"

#include "stagecraft/futures/transport/hand_over.h"
#include "stagecraft/futures/transport/zmq/port_carrier.h"

namespace stagecraft {

std::shared_ptr<const Carrier> choose_carrier(const NetworkHere& here, const PortAddress& there) {
  if (there == here.port->address()) {
    return std::make_shared<HandOver>(here.mailboxes);
  }
  here.port->admit(there);
  return std::make_shared<PortCarrier>(here.port, here.id, there);
}

}  // namespace stagecraft
