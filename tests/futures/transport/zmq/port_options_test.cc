#include "stagecraft/futures/transport/zmq/port_options.h"

#include <chrono>
#include <string>

#include "stagecraft/futures/transport/zmq/data_port.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

TEST_CASE("options out of range are refused before a port is opened", "[futures][port]") {
  const auto refused = [](const DataPortOptions& options, const std::string& what) {
    CHECK_THROWS_WITH(DataPort::open(options), ContainsSubstring(what));
    CHECK(thrown_by([&] { require_valid(options); }) == Errc::UsageArgument);
  };
  refused({.largest_tensor = 0}, "largest_tensor is 0");
  refused({.chunk_bytes = 0}, "chunk_bytes is 0");
  refused({.chunk_bytes = kLargestChunk + 1}, "chunk_bytes is");
  refused({.io_threads = 0}, "io_threads is 0");
  refused({.silence = std::chrono::milliseconds(-1)}, "silence is -1 ms");
}

}  // namespace
}  // namespace stagecraft
