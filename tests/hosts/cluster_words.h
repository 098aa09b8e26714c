/// Makes words that start programs of a cluster on hosts of a test: by `stagecraft launch`, or by
/// hand.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/tests/hosts/test_hosts.h"

namespace stagecraft::tests {

using Words = std::vector<std::string>;

[[nodiscard]] Words join(Words first, const Words& then);

/// Launches a program on the first host; `file` is a file of hosts, `options` are those of launch.
[[nodiscard]] Words launch_words(const TestHosts& hosts,
                                 const std::string& file,
                                 const Words& program,
                                 const Words& options = {});

/// Describes a cluster of two ranks whose workers come by themselves to port 7077 of the first
/// host.
class Joining {
 public:
  /// Makes credentials for all hosts. Errors: std::runtime_error.
  explicit Joining(const TestHosts& hosts);

  /// Starts a program on the first host as the driver, with more variables ("NAME=VALUE").
  [[nodiscard]] Words driver(const Words& program, const Words& variables) const;
  /// Starts a worker on another host that joins `address`, with more options.
  [[nodiscard]] Words worker(int host, const std::string& address, const Words& options = {}) const;

 private:
  const TestHosts& hosts_;
  const std::string credentials_;
};

}  // namespace stagecraft::tests
