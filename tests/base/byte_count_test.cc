#include "stagecraft/base/byte_count.h"

#include <string>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

TEST_CASE("bytes are printed in the largest unit that fits once", "[base][bytes]") {
  CHECK(bytes_text(0) == "0 B");
  CHECK(bytes_text(1023) == "1023 B");
  CHECK(bytes_text(1024) == "1.0 KiB");
  CHECK(bytes_text(1536) == "1.5 KiB");
  CHECK(bytes_text(1024 * 1024 - 1) == "1.0 MiB");
  CHECK(bytes_text(3.0 * (1 << 30)) == "3.0 GiB");
  CHECK(bytes_text(-1536) == "-1.5 KiB");
  CHECK(bytes_text(1e30) == "867361737988.4 EiB");
}

TEST_CASE("a fraction of a byte, as in a mean, is not rounded away", "[base][bytes]") {
  CHECK(bytes_text(0.5) == "0.5 B");
}

TEST_CASE("bytes that are needed are not rounded down", "[base][bytes]") {
  CHECK(enough_bytes_text(0.5) == "1 B");
  CHECK(enough_bytes_text(1024) == "1.0 KiB");
  CHECK(enough_bytes_text(1025) == "1.1 KiB");
  CHECK(enough_bytes_text(1024 * 1024 - 1) == "1.0 MiB");
  for (const double bytes : {1.0, 1000.3, 1024.5, 6990506.7, 3.21e9, 1e15}) {
    CHECK(static_cast<double>(parse_bytes(enough_bytes_text(bytes)).value_or(0)) >= bytes);
  }
}

TEST_CASE("bytes are read as people write them", "[base][bytes]") {
  CHECK(parse_bytes("4096") == 4096);
  CHECK(parse_bytes("512B") == 512);
  CHECK(parse_bytes("1e9") == 1'000'000'000);
  CHECK(parse_bytes("0.0015K") == 1);
  CHECK(parse_bytes("64K") == 64 * 1024);
  CHECK(parse_bytes("512M") == 512 << 20);
  for (const char* same : {"1.5G", "1.5GB", "1.5GiB", "1.5 GiB", "1536M", ".0015e3G"}) {
    CAPTURE(same);
    CHECK(parse_bytes(same) == 1610612736);
  }
  CHECK(parse_bytes("1024T") == std::int64_t{1} << 50);
}

TEST_CASE("other text is no number of bytes", "[base][bytes][bad-input]") {
  for (const char* wrong :
       {"",      " ",      "G",    "4X",  "4g",   "4 ",   " 4",  "4  G",  "4GG",
        "4iB",   "4GiBs",  "-1G",  "-1",  "0",    "0.5",  "1.5", "1e30G", "1e999",
        "1025T", "1e999G", "infG", "nan", "0x10", "4,5G", "+4G"}) {
    CAPTURE(wrong);
    CHECK_FALSE(parse_bytes(wrong));
  }
}

}  // namespace
}  // namespace stagecraft
