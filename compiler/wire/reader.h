/// Reader: what a Writer wrote, value by value, from bytes that anybody may have made.
///
/// Bytes are read as they are asked for, and kept nowhere: a value that is not there, or not of the
/// kind asked for, is an error. fields.h reads records with it.
/// WR-1: what all lists claim to hold together is at most the length of the bytes, which is checked
///       as each claim is met: memory taken is bounded by what was received.
/// WR-2: nesting is that of what is asked for, whatever the bytes say: nobody may read a value that
///       holds values of its own kind.
/// Errors of all: WireFormat, saying which value was wanted and what was found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace stagecraft::wire {

class Reader {
 public:
  /// Requires: `bytes` outlive the reader.
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

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

  /// Errors: when there is a byte left.
  void end() const;

  [[noreturn]] void refuse(const std::string& found) const;

 private:
  enum class Kind : std::uint8_t { Nil, False, True, Natural, Negative, Number, Text, Array, Map };
  /// One value, or the head of a list.
  struct Token {
    Kind kind;
    std::uint64_t payload = 0;  ///< the number's bits; Text: bytes; Array, Map: how many
  };

  Token take();
  Token take_marked(unsigned char mark);
  Token list(Kind kind, std::uint64_t count);
  std::uint64_t big_endian(std::size_t size);
  /// Errors: when fewer than `count` are left.
  void need(std::uint64_t count) const;
  [[noreturn]] void refuse(std::string_view wanted, const Token& found) const;

  std::string_view bytes_;
  std::size_t next_ = 0;
  std::size_t begin_ = 0;  ///< of the value that was taken last
  std::uint64_t claimed_ = 0;
};

}  // namespace stagecraft::wire
