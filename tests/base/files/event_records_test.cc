#include "stagecraft/base/files/event_records.h"

#include <string>
#include <vector>

#include "stagecraft/tests/base/files/event_reader.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

TEST_CASE("CRC-32C has the values of RFC 3720", "[base][metrics]") {
  CHECK(crc32c("") == 0U);
  CHECK(crc32c("123456789") == 0xe3069283U);
  CHECK(crc32c(std::string(32, '\0')) == 0x8a9136aaU);
  CHECK(crc32c(std::string(32, '\xff')) == 0x62a8ab43U);
  std::string ascending;
  for (char c = 0; c < 32; ++c) {
    ascending += c;
  }
  CHECK(crc32c(ascending) == 0x46dd794eU);
}

TEST_CASE("a record equals the one that TensorFlow's own writer makes", "[base][metrics]") {
  // The description of the format gives Event(wall_time=1.0, file_version="brain.Event:2").
  const std::string record = version_record(1.0);
  const std::vector<ReadEvent> events = events_in(record);
  REQUIRE(events.size() == 1);
  CHECK(events[0].wall_time == 1.0);
  CHECK(events[0].version == "brain.Event:2");
  CHECK(record.size() == 8 + 4 + (1 + 8) + (1 + 1) + (1 + 1 + 13) + 4);
}

}  // namespace
}  // namespace stagecraft
