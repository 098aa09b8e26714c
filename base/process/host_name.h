/// host_name returns the name of this host, for messages and logs.
#pragma once

#include <string>

namespace stagecraft {

[[nodiscard]] std::string host_name();

}  // namespace stagecraft
