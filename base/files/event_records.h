/// Event records are the entries of the files that TensorBoard reads (events.out.tfevents.*):
///
///   8 bytes   length of the event, little-endian
///   4 bytes   masked CRC-32C of the length
///   event     protobuf: tensorflow.Event
///   4 bytes   masked CRC-32C of the event
///
/// This file writes three kinds of event, with six fields in all, by hand. Protobuf would bring a
/// compiler to the build and a second copy of itself into programs that use LibTorch, which
/// contains one.
/// Used by MetricsWriter. Source: tensorflow/core/util/event.proto, tsl/lib/io/record_writer.cc.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace stagecraft {

/// Returns the CRC-32C (RFC 3720, appendix B.4) of the bytes, not masked.
[[nodiscard]] std::uint32_t crc32c(std::string_view bytes);

/// Returns the first record of a file. In every record, `wall_time` is in seconds since 1970.
[[nodiscard]] std::string version_record(double wall_time);

/// Returns a record that invalidates this step and later ones in the other files of the folder.
[[nodiscard]] std::string restart_record(double wall_time, std::int64_t step);

/// Returns a record with named values at a step.
[[nodiscard]] std::string scalars_record(double wall_time,
                                         std::int64_t step,
                                         std::span<const std::pair<std::string, double>> scalars);

}  // namespace stagecraft
