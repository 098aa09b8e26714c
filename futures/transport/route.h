/// Route says how tensors get from one rank to another.
#pragma once

#include <cstdint>
#include <string_view>

namespace stagecraft {

enum class Route : std::int32_t {
  Unused,        ///< the ranks are in two processes, and nothing was sent
  HandOver,      ///< in one process: the same storage
  SharedMemory,  ///< between processes of one host
  Socket,        ///< encrypted
};

[[nodiscard]] constexpr std::string_view to_string(Route route) {
  switch (route) {
    case Route::Unused:
      return "unused";
    case Route::HandOver:
      return "hand-over in one process";
    case Route::SharedMemory:
      return "shared memory";
    case Route::Socket:
      return "encrypted socket";
  }
  return "unknown";  // of a process of another release
}

}  // namespace stagecraft
