/// PortAddress holds the endpoint at which a process receives tensors of other processes, and the
/// key that proves its identity. Made by its DataPort, sent to the others in a control message.
#pragma once

#include <string>

namespace stagecraft {

struct PortAddress {
  std::string endpoint;  ///< "tcp://127.0.0.1:41234" or "ipc://@name"
  std::string key;       ///< CURVE public key in Z85: 40 characters, new with every port

  friend bool operator==(const PortAddress&, const PortAddress&) = default;
};

template <class Visitor>
decltype(auto) visit_fields(PortAddress& m, Visitor&& visit) {
  return visit(m.endpoint, m.key);
}

}  // namespace stagecraft
