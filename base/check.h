/// SC_CHECK guards Stagecraft's own invariants: a failure is a bug of Stagecraft, never of its
/// user.
#pragma once

#include <string>

#include "stagecraft/base/error.h"

namespace stagecraft {

[[noreturn]] void check_failed(const char* expression,
                               const char* file,
                               int line,
                               const std::string& detail);

}  // namespace stagecraft

#define SC_CHECK(expression, detail)                                         \
  do {                                                                       \
    if (!(expression)) {                                                     \
      ::stagecraft::check_failed(#expression, __FILE__, __LINE__, (detail)); \
    }                                                                        \
  } while (false)
