#include "stagecraft/scheduler/model/hash.h"

#include <string>

namespace stagecraft {

std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  }
  return hash;
}

std::uint64_t schedule_hash(const Schedule& schedule) {
  std::string text;
  for (std::size_t r = 0; r < schedule.rows().size(); ++r) {
    if (r > 0) {
      text += '\n';
    }
    bool first = true;
    for (const Cell& cell : schedule.rows()[r]) {
      if (cell.idle()) {
        continue;
      }
      if (!first) {
        text += ' ';
      }
      text += to_string(cell);
      first = false;
    }
  }
  return fnv1a(text);
}

}  // namespace stagecraft
