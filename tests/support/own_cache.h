/// Gives profiles a folder of their own for as long as a test runs; programs that it starts use it
/// too.
#pragma once

#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/environment_variable.h"

namespace stagecraft::tests {

class OwnCache {
 private:
  TemporaryFolder folder_;
  EnvironmentVariable variable_{"XDG_CACHE_HOME", folder_.path()};
};

}  // namespace stagecraft::tests
