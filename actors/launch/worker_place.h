/// WorkerPlace says where the worker of a rank runs, as a cluster reports it.
#pragma once

#include <cstdint>
#include <string>

#include "stagecraft/actors/executor/device/processor.h"
#include "stagecraft/base/ids.h"

namespace stagecraft {

struct WorkerPlace {
  Rank rank;
  bool lost = false;              ///< it has ended or is silent, and was not replaced
  std::int64_t process = 0;       ///< its id; 0 before one was needed
  std::int64_t incarnation = 0;   ///< how often the worker was replaced
  std::string address;            ///< where tensors reach it; empty for a thread of this process
  std::string host;               ///< on which it runs; empty: this host, or none was needed yet
  ProcessorFacts processor = {};  ///< by which its libraries choose code; empty: no worker yet
};

}  // namespace stagecraft
