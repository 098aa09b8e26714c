#include "stagecraft/tools/version.h"

namespace stagecraft::tools {

std::string_view version_text() {
  return STAGECRAFT_VERSION STAGECRAFT_COMMIT;
}

}  // namespace stagecraft::tools
