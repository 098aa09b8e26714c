/// Reader reads the values that a Writer wrote, one by one, from bytes that may come from any
/// source.
///
/// msgpack's own parser takes the bytes apart once, before the first value is requested. A value
/// that is not of the requested kind is an error. fields.h reads records with it.
/// WR-1: the lists together claim to hold at most as many values as there are bytes. This is
///       checked for each claim as it is met, so the memory taken is bounded by the bytes received.
/// WR-2: nesting ends at kDeepest.
/// Errors of all: WireFormat, naming the wanted and the found value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft::wire {

inline constexpr std::size_t kDeepest = 32;

/// Token is one value of the bytes, or the head of a list.
struct Token {
  enum class Kind : std::uint8_t { Nil, False, True, Natural, Negative, Number, Text, Array, Map };
  Kind kind = Kind::Nil;
  std::uint32_t size = 0;     ///< Text: bytes; Array, Map: number of elements
  std::uint64_t payload = 0;  ///< the number's bits; Text: where it begins
};

class Reader {
 public:
  /// Requires: `bytes` outlive the reader.
  explicit Reader(std::string_view bytes);

  /// Skips the next value if it is nil, and returns whether it was.
  [[nodiscard]] bool take_nil();
  [[nodiscard]] bool boolean();
  [[nodiscard]] std::int64_t integer();
  [[nodiscard]] std::uint64_t natural();
  [[nodiscard]] double number();
  [[nodiscard]] std::string_view text();
  /// Return how many values of the list follow; for a map, how many pairs.
  [[nodiscard]] std::size_t array();
  [[nodiscard]] std::size_t map();
  /// Skips the head of an array of `count`.
  void array_of(std::size_t count, std::string_view what);

  /// Ends the text. Errors: WireFormat if there is a value left.
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
