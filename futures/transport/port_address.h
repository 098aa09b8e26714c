/// PortAddress holds the endpoint at which a process receives tensors of other processes, and the
/// key that proves its identity. Its DataPort makes it; control messages carry it to the others.
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
