/// Ways from this host to the doors of others (door.h), tried all at once.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "stagecraft/tools/doctor/door.h"

namespace stagecraft::tools {

struct Way {
  std::string to;  ///< the host, as people call it
  DoorPlace door;
};

struct TriedWay {
  Way way;
  std::string fault;  ///< "connection timed out"; empty: it is open
};

/// In the order of `ways`, after `patience` at the latest.
[[nodiscard]] std::vector<TriedWay> try_ways(const std::vector<Way>& ways,
                                             std::chrono::milliseconds patience);

}  // namespace stagecraft::tools
