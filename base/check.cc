#include "stagecraft/base/check.h"

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft {

void check_failed(const char* expression, const char* file, int line, const std::string& detail) {
  throw Error(
      Errc::Internal,
      fmt::format(
          "a bug of Stagecraft: {} does not hold at {}:{}: {}", expression, file, line, detail));
}

}  // namespace stagecraft
