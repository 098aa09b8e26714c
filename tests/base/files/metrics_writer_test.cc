#include "stagecraft/base/files/metrics_writer.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "stagecraft/base/error.h"
#include "stagecraft/base/files/event_records.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::ContainsSubstring;
using tests::read_text_file;
using tests::TemporaryFolder;

// ---- a reader of records, written from the format's description alone ---------------------------

std::uint64_t number_at(std::string_view bytes, std::size_t at, std::size_t size) {
  REQUIRE(at + size <= bytes.size());
  std::uint64_t value = 0;
  for (std::size_t i = size; i-- > 0;) {
    value = value << 8U | static_cast<unsigned char>(bytes[at + i]);
  }
  return value;
}

/// Computes the CRC bit by bit from the polynomial.
std::uint32_t slow_crc(std::string_view bytes) {
  std::uint32_t crc = 0xffffffffU;
  for (const char byte : bytes) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      const bool one = (((static_cast<unsigned char>(byte) >> bit) ^ crc) & 1U) != 0;
      crc = (crc >> 1U) ^ (one ? 0x82f63b78U : 0U);
    }
  }
  return ~crc;
}

bool is_masked_crc(std::uint64_t found, std::string_view bytes) {
  const auto rotated = static_cast<std::uint32_t>(found) - 0xa282ead8U;
  return (rotated >> 17U | rotated << 15U) == slow_crc(bytes);
}

/// Holds the fields of a message: the number of each, with its integer or its bytes.
using Message = std::multimap<int, std::pair<std::uint64_t, std::string>>;

std::uint64_t varint(std::string_view bytes, std::size_t& at) {
  std::uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7U) {
    const auto byte = static_cast<unsigned char>(bytes.at(at++));
    value |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
    if (byte < 0x80U) {
      return value;
    }
  }
}

Message message_of(std::string_view bytes) {
  Message message;
  for (std::size_t at = 0; at < bytes.size();) {
    const std::uint64_t key = varint(bytes, at);
    std::uint64_t value = 0;
    std::string text;
    switch (key & 7U) {
      case 0:
        value = varint(bytes, at);
        break;
      case 1:
        value = number_at(bytes, at, 8);
        at += 8;
        break;
      case 2: {
        const auto size = static_cast<std::size_t>(varint(bytes, at));
        REQUIRE(at + size <= bytes.size());
        text = bytes.substr(at, size);
        at += size;
        break;
      }
      case 5:
        value = number_at(bytes, at, 4);
        at += 4;
        break;
      default:
        FAIL("no form of a field");
    }
    message.emplace(static_cast<int>(key >> 3U), std::pair(value, text));
  }
  return message;
}

struct ReadEvent {
  double wall_time = 0.0;
  std::int64_t step = 0;
  std::string version;
  std::optional<std::uint64_t> session_status;
  std::map<std::string, float> scalars;
};

std::vector<ReadEvent> events_in(std::string_view bytes) {
  std::vector<ReadEvent> events;
  while (!bytes.empty()) {
    const auto size = static_cast<std::size_t>(number_at(bytes, 0, 8));
    REQUIRE(bytes.size() >= size + 16);
    CHECK(is_masked_crc(number_at(bytes, 8, 4), bytes.substr(0, 8)));
    const std::string_view data = bytes.substr(12, size);
    CHECK(is_masked_crc(number_at(bytes, 12 + size, 4), data));
    const Message message = message_of(data);
    ReadEvent& event = events.emplace_back();
    event.wall_time = std::bit_cast<double>(message.find(1)->second.first);
    event.step = static_cast<std::int64_t>(message.find(2)->second.first);
    if (const auto version = message.find(3); version != message.end()) {
      event.version = version->second.second;
    }
    if (const auto session = message.find(7); session != message.end()) {
      event.session_status = message_of(session->second.second).find(1)->second.first;
    }
    if (const auto summary = message.find(5); summary != message.end()) {
      for (const auto& [number, field] : message_of(summary->second.second)) {
        CHECK(number == 1);
        const Message value = message_of(field.second);
        event.scalars[value.find(1)->second.second] =
            std::bit_cast<float>(static_cast<std::uint32_t>(value.find(2)->second.first));
      }
    }
    bytes.remove_prefix(size + 16);
  }
  return events;
}

std::set<std::string> event_files(const std::string& folder) {
  std::set<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename().string().starts_with("events.out.tfevents.")) {
      files.insert(entry.path().string());
    }
  }
  return files;
}

}  // namespace

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

TEST_CASE("a record is what TensorFlow's own writer makes of the event", "[base][metrics]") {
  // The description of the format gives Event(wall_time=1.0, file_version="brain.Event:2").
  const std::string record = version_record(1.0);
  const std::vector<ReadEvent> events = events_in(record);
  REQUIRE(events.size() == 1);
  CHECK(events[0].wall_time == 1.0);
  CHECK(events[0].version == "brain.Event:2");
  CHECK(record.size() == 8 + 4 + (1 + 8) + (1 + 1) + (1 + 1 + 13) + 4);
}

TEST_CASE("what is told of steps stands in the table and in the events", "[base][metrics]") {
  const TemporaryFolder folder;
  const std::string place = folder.path() + "/runs/a";
  MetricsWriter metrics(place, {"loss", "accuracy"});
  metrics.write(1, {{"loss", 0.5}});
  metrics.write(300, {{"accuracy", 0.25}, {"loss", std::numeric_limits<double>::quiet_NaN()}});
  // The rows must be there before the writer is destroyed (MW-1).
  CHECK(read_text_file(place + "/metrics.csv") == "step,loss,accuracy\n1,0.5,\n300,nan,0.25\n");
  REQUIRE(event_files(place).size() == 1);
  const std::vector<ReadEvent> events = events_in(read_text_file(*event_files(place).begin()));
  REQUIRE(events.size() == 4);
  CHECK(events[0].version == "brain.Event:2");
  CHECK(events[1].session_status == 1);
  CHECK(events[1].step == 1);
  CHECK(events[2].scalars == std::map<std::string, float>{{"loss", 0.5F}});
  CHECK(events[3].step == 300);
  CHECK(events[3].scalars.at("accuracy") == 0.25F);
  CHECK(std::isnan(events[3].scalars.at("loss")));
  CHECK(events[3].wall_time > 1.6e9);
}

TEST_CASE("a run that goes on drops what it makes again, and no step comes twice (MW-2)",
          "[base][metrics]") {
  const TemporaryFolder folder;
  {
    MetricsWriter first(folder.path(), {"loss"});
    for (int step = 1; step <= 3; ++step) {
      first.write(step, {{"loss", step}});
    }
  }
  const std::string table = folder.path() + "/metrics.csv";
  // A killed process leaves the table like this: the last row has no end.
  folder.write("metrics.csv", read_text_file(table) + "4,4.");
  const std::set<std::string> before = event_files(folder.path());
  MetricsWriter second(folder.path(), {"loss", "eval_loss"}, 2);
  second.write(3, {{"loss", 30.0}, {"eval_loss", 7.0}});
  CHECK(read_text_file(table) == "step,loss,eval_loss\n1,1,\n2,2,\n3,30,7\n");
  std::set<std::string> added = event_files(folder.path());
  for (const std::string& file : before) {
    added.erase(file);
  }
  REQUIRE(added.size() == 1);
  const std::vector<ReadEvent> events = events_in(read_text_file(*added.begin()));
  REQUIRE(events.size() == 3);
  CHECK(events[1].session_status == 1);  // makes TensorBoard drop the other file's step 3
  CHECK(events[1].step == 3);
}

TEST_CASE("metrics are refused where they cannot be kept", "[base][metrics]") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& place, const std::vector<std::string>& columns) {
    return refusal([&] { const MetricsWriter metrics(place, columns); },
                   columns.empty() ? Errc::UsageFile : Errc::UsageArgument);
  };
  CHECK_THAT(refused(folder.write("file", ""), {}), ContainsSubstring("cannot be written"));
  folder.write("metrics.csv", "name,value\nx,1\n");
  CHECK_THAT(refused(folder.path(), {}), ContainsSubstring("found 'name,value'"));
  CHECK(read_text_file(folder.path() + "/metrics.csv") == "name,value\nx,1\n");
  const std::string fresh = folder.path() + "/fresh";
  CHECK_THAT(refused(fresh, {"a,b"}), ContainsSubstring("'a,b'"));
  CHECK_THAT(refused(fresh, {"a", "a"}), ContainsSubstring("'a'"));
  CHECK_THAT(refused(fresh, {"step"}), ContainsSubstring("'step'"));
  MetricsWriter metrics(fresh, {"loss"});
  CHECK_THAT(refusal(
                 [&] {
                   metrics.write(1, {{"lose", 1.0}});
                 },
                 Errc::UsageArgument),
             ContainsSubstring("expected one of the columns loss, found 'lose'"));
  CHECK(read_text_file(fresh + "/metrics.csv") == "step,loss\n");
}

}  // namespace stagecraft
