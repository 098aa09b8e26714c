/// Event records: what TensorBoard reads, one record after the other (files events.out.tfevents.*).
///
///   8 bytes   length of the event, little-endian
///   4 bytes   masked CRC-32C of these
///   event     protobuf: tensorflow.Event
///   4 bytes   masked CRC-32C of the event
///
/// Three kinds of event, of six fields in all, are written by hand: protobuf would bring a compiler
/// to the build and a second copy of itself into programs of LibTorch, which has its own inside.
/// Used by MetricsWriter. Source: tensorflow/core/util/event.proto, tsl/lib/io/record_writer.cc.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace stagecraft {

/// CRC-32 of Castagnoli's polynomial (RFC 3720, appendix B.4), not masked.
[[nodiscard]] std::uint32_t crc32c(std::string_view bytes);

/// The first record of a file. `wall_time` of all: seconds since 1970.
[[nodiscard]] std::string version_record(double wall_time);

/// From here on what other files of the folder have of this step and later ones no longer counts.
[[nodiscard]] std::string restart_record(double wall_time, std::int64_t step);

/// Values at a step, each under a name.
[[nodiscard]] std::string scalars_record(double wall_time,
                                         std::int64_t step,
                                         std::span<const std::pair<std::string, double>> scalars);

}  // namespace stagecraft
