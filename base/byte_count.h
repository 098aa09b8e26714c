/// byte_count writes numbers of bytes for people, and reads them as people write them: options of
/// the command, texts of the library, messages and reports all have this one form. Units are
/// powers of 1024. Any thread may call it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stagecraft {

/// Returns "512 B" or "1.5 GiB".
[[nodiscard]] std::string bytes_text(double bytes);

/// Does the same, but never rounds down: the bytes that the text names suffice for `bytes`.
[[nodiscard]] std::string enough_bytes_text(double bytes);

/// Says what parse_bytes() reads, for messages: "--memory expects {}, found '4X'".
inline constexpr std::string_view kBytesForm =
    "a number of bytes from 1 to 1024T, e.g. 512M or 4G (powers of 1024)";

/// Returns the whole bytes of "4G", "1.5GiB", "512 MB", "64K" or "1e9"; nothing for other text, for
/// less than 1 byte or more than 1024T, and for a fraction without a unit.
[[nodiscard]] std::optional<std::int64_t> parse_bytes(std::string_view text);

}  // namespace stagecraft
