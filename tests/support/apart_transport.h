/// ApartTransport is the end of a rank that acts as if each other rank were in another process:
/// nothing on a device is handed over.
#pragma once

#include "stagecraft/futures/transport/forwarding_transport.h"

namespace stagecraft::tests {

class ApartTransport final : public ForwardingTransport {
 public:
  using ForwardingTransport::ForwardingTransport;

  [[nodiscard]] bool hands_over(Rank /*to*/) const override { return false; }
  [[nodiscard]] Route route_to(Rank /*to*/) const override { return Route::Socket; }
};

}  // namespace stagecraft::tests
