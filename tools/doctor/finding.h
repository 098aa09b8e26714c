/// Finding: what the doctor says of one thing it has looked at, and how to mend it.
#pragma once

#include <cstdint>
#include <string>

namespace stagecraft::tools {

enum class Level : std::uint8_t {
  Ok,
  Note,     ///< worth knowing; nothing fails by it
  Problem,  ///< a run fails by it, or computes other bits
};

struct Finding {
  std::string host;   ///< of which; "between hosts" and "credentials" for what is of none
  std::string check;  ///< "open files": the same word wherever it is looked at
  Level level = Level::Ok;
  std::string what;
  std::string mend;  ///< what to do; empty where there is nothing to be done
};

}  // namespace stagecraft::tools
