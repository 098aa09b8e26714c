/// HostExam: what the doctor learnt of one host by asking it. Judged by machine_checks.h and
/// pair_checks.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stagecraft/tools/doctor/clock_bounds.h"
#include "stagecraft/tools/doctor/door.h"
#include "stagecraft/tools/doctor/host_facts.h"
#include "stagecraft/tools/doctor/names.h"
#include "stagecraft/tools/doctor/ways.h"

namespace stagecraft::tools {

/// How the machine is called on which the doctor was started: it is where the driver is to run.
inline constexpr const char* kHere = "this machine";

struct HostExam {
  std::string name = kHere;  ///< as the hosts' file has it
  int workers = 0;           ///< that are to run there
  std::string program;       ///< that was asked there
  bool own_program = false;  ///< workers there run another one, which only its driver knows
  std::string silence;       ///< why it did not answer, or not to the end; empty: it did

  std::optional<HostFacts> facts;
  DoorPlace door;
  std::string no_door;         ///< why there is none; empty: there is
  ClockBounds clock;           ///< against this machine's
  std::vector<TriedWay> ways;  ///< from it to others
  KnownNames names;            ///< what it takes the hosts' names for
};

}  // namespace stagecraft::tools
