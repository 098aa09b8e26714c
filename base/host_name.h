/// host_name: what this host calls itself, for messages and logs.
#pragma once

#include <string>

namespace stagecraft {

[[nodiscard]] std::string host_name();

}  // namespace stagecraft
