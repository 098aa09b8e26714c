/// HostExam holds all answers of one host to the doctor. machine_checks.h and pair_checks.h judge
/// it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stagecraft/tools/doctor/facts/clock_bounds.h"
#include "stagecraft/tools/doctor/facts/host_facts.h"
#include "stagecraft/tools/doctor/facts/names.h"
#include "stagecraft/tools/doctor/talk/door.h"
#include "stagecraft/tools/doctor/talk/ways.h"

namespace stagecraft::tools {

/// The name of the machine on which the doctor runs. The driver will run there.
inline constexpr const char* kHere = "this machine";

struct HostExam {
  std::string name = kHere;  ///< as in the hosts' file
  int workers = 0;           ///< number of workers to run there
  std::string program;       ///< the program that the doctor asks there
  bool own_program = false;  ///< workers there run another program, which only its driver knows
  std::string silence;       ///< the reason why an answer is missing; empty: all came

  std::optional<HostFacts> facts;
  DoorPlace door;
  std::string no_door;         ///< the reason why there is no door; empty: there is one
  ClockBounds clock;           ///< relative to this machine's clock
  std::vector<TriedWay> ways;  ///< from this host to others
  KnownNames names;            ///< its addresses for the hosts' names
};

}  // namespace stagecraft::tools
