/// FleetMember is a worker process that has joined a fleet.
#pragma once

#include <cstdint>
#include <string>

#include "stagecraft/actors/executor/device/processor.h"
#include "stagecraft/actors/messages/process_actors.h"
#include "stagecraft/futures/transport/zmq/data_port.h"

namespace stagecraft {

struct FleetMember {
  int place = 0;
  std::int64_t incarnation = 0;
  WorkerHostActor host;
  PortAddress port;
  std::int64_t process = 0;  ///< its id on its host
  std::string host_name;     ///< as the worker reports it
  ProcessorFacts processor;  ///< before it was held to a capability
};

}  // namespace stagecraft
