/// Reader: what a Writer wrote, value by value, from bytes that anybody may have made.
///
/// The bytes are taken apart once, by msgpack's own parser, before the first value is asked for; a
/// value that is not of the kind asked for is an error. fields.h reads records with it.
/// WR-1: what all lists claim to hold together is at most the length of the bytes, which is checked
///       as each claim is met: memory taken is bounded by what was received.
/// WR-2: nesting ends at kDeepest.
/// Errors of all: WireFormat, saying which value was wanted and what was found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft::wire {

inline constexpr std::size_t kDeepest = 32;

/// One value of the bytes, or the head of a list.
struct Token {
  enum class Kind : std::uint8_t { Nil, False, True, Natural, Negative, Number, Text, Array, Map };
  Kind kind = Kind::Nil;
  std::uint32_t size = 0;     ///< Text: bytes; Array, Map: how many
  std::uint64_t payload = 0;  ///< the number's bits; Text: where it begins
};

class Reader {
 public:
  /// Requires: `bytes` outlive the reader.
  explicit Reader(std::string_view bytes);

  /// Passes over the next value if it is nil.
  [[nodiscard]] bool take_nil();
  [[nodiscard]] bool boolean();
  [[nodiscard]] std::int64_t integer();
  [[nodiscard]] std::uint64_t natural();
  [[nodiscard]] double number();
  [[nodiscard]] std::string_view text();
  /// Returns how many values follow that belong to it; for a map, how many pairs.
  [[nodiscard]] std::size_t array();
  [[nodiscard]] std::size_t map();
  /// Passes over the head of an array of `count`.
  void array_of(std::size_t count, std::string_view what);

  /// Errors: when there is a value left.
  void end() const;

  [[noreturn]] void refuse(const std::string& found) const;

 private:
  const Token& take(std::string_view wanted);
  [[noreturn]] void refuse(std::string_view wanted, const Token& found) const;

  std::string_view bytes_;
  std::vector<Token> tokens_;
  std::size_t next_ = 0;
};

}  // namespace stagecraft::wire
