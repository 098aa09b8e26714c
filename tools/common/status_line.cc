#include "stagecraft/tools/common/status_line.h"

#include <ostream>

namespace stagecraft::tools {

void StatusLine::write(std::string_view text) {
  if (shows_) {
    console_.err << "\r" << text << "\x1b[K" << std::flush;
  }
}

}  // namespace stagecraft::tools
