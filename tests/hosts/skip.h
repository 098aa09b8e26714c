/// skip_without_hosts: what a test begins with that needs TestHosts. Included last, as catch.h is.
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
