#include "stagecraft/base/files/event_records.h"

#include <array>
#include <bit>
#include <cstddef>

namespace stagecraft {
namespace {

// Field numbers of tensorflow.Event, Summary, Summary.Value and SessionLog.
constexpr int kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7;
constexpr int kValue = 1, kTag = 1, kSimpleValue = 2;
constexpr int kStatus = 1;
constexpr std::uint64_t kStart = 1;

// Protobuf's wire types.
constexpr int kVarint = 0, kEightBytes = 1, kWithLength = 2, kFourBytes = 5;

constexpr std::array<std::uint32_t, 256> kTable = [] {
  constexpr std::uint32_t kReversedPolynomial = 0x82f63b78U;
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) {
      value = (value >> 1U) ^ ((value & 1U) != 0 ? kReversedPolynomial : 0U);
    }
    table[i] = value;
  }
  return table;
}();

template <class Unsigned>
void append_little_endian(std::string& bytes, Unsigned value) {
  for (std::size_t i = 0; i < sizeof(Unsigned); ++i) {
    bytes += static_cast<char>((value >> (8 * i)) & 0xFFU);
  }
}

void append_varint(std::string& bytes, std::uint64_t value) {
  for (; value >= 0x80U; value >>= 7U) {
    bytes += static_cast<char>((value & 0x7FU) | 0x80U);
  }
  bytes += static_cast<char>(value);
}

void append_key(std::string& bytes, int field, int form) {
  append_varint(bytes, static_cast<std::uint64_t>(field) << 3U | static_cast<std::uint64_t>(form));
}

void append_number(std::string& bytes, int field, std::uint64_t value) {
  append_key(bytes, field, kVarint);
  append_varint(bytes, value);
}

void append_double(std::string& bytes, int field, double value) {
  append_key(bytes, field, kEightBytes);
  append_little_endian(bytes, std::bit_cast<std::uint64_t>(value));
}

void append_float(std::string& bytes, int field, float value) {
  append_key(bytes, field, kFourBytes);
  append_little_endian(bytes, std::bit_cast<std::uint32_t>(value));
}

void append_text(std::string& bytes, int field, std::string_view text) {
  append_key(bytes, field, kWithLength);
  append_varint(bytes, text.size());
  bytes += text;
}

/// Masks a checksum: data that ends with its own checksum would otherwise always give the same one.
std::uint32_t masked(std::uint32_t crc) {
  return ((crc >> 15U) | (crc << 17U)) + 0xa282ead8U;
}

std::string record_of(std::string_view event) {
  std::string record;
  append_little_endian(record, static_cast<std::uint64_t>(event.size()));
  append_little_endian(record, masked(crc32c(record)));
  record += event;
  append_little_endian(record, masked(crc32c(event)));
  return record;
}

std::string begin_event(double wall_time, std::int64_t step) {
  std::string event;
  append_double(event, kWallTime, wall_time);
  append_number(event, kStep, static_cast<std::uint64_t>(step));
  return event;
}

}  // namespace

std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = ~0U;
  for (const char byte : bytes) {
    crc = (crc >> 8U) ^ kTable[(crc ^ static_cast<unsigned char>(byte)) & 0xFFU];
  }
  return ~crc;
}

std::string version_record(double wall_time) {
  std::string event = begin_event(wall_time, 0);
  append_text(event, kFileVersion, "brain.Event:2");
  return record_of(event);
}

std::string restart_record(double wall_time, std::int64_t step) {
  std::string log;
  append_number(log, kStatus, kStart);
  std::string event = begin_event(wall_time, step);
  append_text(event, kSessionLog, log);
  return record_of(event);
}

std::string scalars_record(double wall_time,
                           std::int64_t step,
                           std::span<const std::pair<std::string, double>> scalars) {
  std::string summary;
  for (const auto& [name, number] : scalars) {
    std::string value;
    append_text(value, kTag, name);
    append_float(value, kSimpleValue, static_cast<float>(number));
    append_text(summary, kValue, value);
  }
  std::string event = begin_event(wall_time, step);
  append_text(event, kSummary, summary);
  return record_of(event);
}

}  // namespace stagecraft
