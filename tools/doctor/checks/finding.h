/// Finding is the result of one check of the doctor, with the way to repair the fault.
#pragma once

#include <cstdint>
#include <string>

namespace stagecraft::tools {

enum class Level : std::uint8_t {
  Ok,
  Note,     ///< worth knowing; nothing fails by it
  Problem,  ///< a run fails because of it, or computes other bits
};

struct Finding {
  std::string host;   ///< the host; "between hosts" or "credentials" if it is about none
  std::string check;  ///< "open files": one check has the same name on all hosts
  Level level = Level::Ok;
  std::string what;
  std::string remedy;  ///< empty if none is needed
};

}  // namespace stagecraft::tools
