#include "stagecraft/tests/base/files/event_reader.h"

#include <bit>
#include <cstddef>
#include <utility>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

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

}  // namespace

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

}  // namespace stagecraft
