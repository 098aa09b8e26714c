#include "stagecraft/tools/doctor/facts/digits.h"

namespace stagecraft::tools {

SocketAddress address_of_digits(const std::string& digits, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int fault = getaddrinfo(digits.c_str(), std::to_string(port).c_str(), &hints, &found);
  return {fault == 0 ? found : nullptr, &freeaddrinfo};
}

}  // namespace stagecraft::tools
