#include "stagecraft/base/byte_count.h"

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

TEST_CASE("bytes are printed in the largest unit that fits once", "[base][bytes]") {
  CHECK(bytes_text(0) == "0 B");
  CHECK(bytes_text(1023) == "1023 B");
  CHECK(bytes_text(1024) == "1.0 KiB");
  CHECK(bytes_text(1536) == "1.5 KiB");
  CHECK(bytes_text(3.0 * (1 << 30)) == "3.0 GiB");
  CHECK(bytes_text(1e30) == "867361737988.4 EiB");
}

TEST_CASE("a fraction of a byte, as in a mean, is not rounded away", "[base][bytes]") {
  CHECK(bytes_text(0.5) == "0.5 B");
}

}  // namespace
}  // namespace stagecraft
