#include "stagecraft/base/files/write_all.h"

#include <algorithm>
#include <cerrno>

namespace stagecraft {

int write_all(int file, std::span<const char> bytes, Disk& disk) {
  while (!bytes.empty()) {
    const ssize_t count = disk.write(file, bytes);
    if (count < 0 && errno != EINTR) {
      return errno;
    }
    bytes = bytes.subspan(static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  }
  return 0;
}

}  // namespace stagecraft
