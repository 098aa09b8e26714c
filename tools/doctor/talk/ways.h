/// ways tries ways from this host to the doors of others (door.h), all at once.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "stagecraft/tools/doctor/talk/door.h"

namespace stagecraft::tools {

struct Way {
  std::string to;  ///< name of the host for people
  DoorPlace door;
};

struct TriedWay {
  Way way;
  std::string fault;  ///< "connection timed out"; empty: it is open
};

/// Returns the results in the order of `ways`, within `patience`.
[[nodiscard]] std::vector<TriedWay> try_ways(const std::vector<Way>& ways,
                                             std::chrono::milliseconds patience);

}  // namespace stagecraft::tools
