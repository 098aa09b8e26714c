/// skip_without_hosts: call it first in a test that needs TestHosts. Include this header last, as
/// catch.h.
#pragma once

#include "stagecraft/tests/hosts/test_hosts.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tests {

inline void skip_without_hosts() {
  if (const auto why = TestHosts::obstacle()) {
    SKIP(*why);
  }
}

}  // namespace stagecraft::tests
