/// A folder of its own for what profiles keep, for as long as a test runs; programs that it starts
/// use it too.
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

#include "stagecraft/tests/support/command.h"

namespace stagecraft::tests {

class OwnCache {
 public:
  OwnCache() {
    if (const char* before = std::getenv(kName)) {
      before_ = before;
    }
    setenv(kName, folder_.path().c_str(), 1);
  }
  ~OwnCache() {
    if (before_) {
      setenv(kName, before_->c_str(), 1);
    } else {
      unsetenv(kName);
    }
  }
  OwnCache(const OwnCache&) = delete;
  OwnCache& operator=(const OwnCache&) = delete;

 private:
  static constexpr const char* kName = "XDG_CACHE_HOME";

  TemporaryFolder folder_;
  std::optional<std::string> before_;
};

}  // namespace stagecraft::tests
