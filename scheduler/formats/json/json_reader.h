/// JsonReader reads a JSON text from front to back, value by value, each with its line and column.
///
/// Schedule files are long and simple, so it builds no tree. Memory is in proportion to the values
/// that the caller keeps, and every complaint has a place. The caller asks for the values that it
/// expects and skips the rest. The reader checks that all of the text is JSON. It views the text,
/// which must outlive it.
/// J-1: nesting is limited, so nothing recurses without bound.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stagecraft/scheduler/formats/parts/cell_text.h"

namespace stagecraft::formats {

class JsonReader {
 public:
  enum class Kind { Null, Boolean, Number, String, Array, Object };

  explicit JsonReader(std::string_view text);

  /// Returns the kind of the next value.
  [[nodiscard]] Kind next();
  /// Reads the next value; returns nothing if it is of another kind, or a number that is no int.
  std::optional<int> integer();
  std::optional<std::string> string();
  /// Reads the next value of any kind and returns its text.
  std::string_view skip();

  /// Opens an array or object. Requires: next() is of that kind. The caller then reads its elements
  /// one by one: next_element() or next_key() tells whether there is another, and closes it after
  /// the last.
  void open();
  [[nodiscard]] bool next_element();
  [[nodiscard]] std::optional<std::string> next_key();
  /// Ends the text. Errors: ScheduleParse if anything but blanks follows.
  void finish();

  /// Returns the offset of the latest key.
  [[nodiscard]] std::size_t key_offset() const { return key_at_; }
  /// Returns the offset of the next value.
  [[nodiscard]] std::size_t offset();
  /// Returns line and column of an offset.
  [[nodiscard]] Location location(std::size_t offset) const;
  /// Throws ScheduleParse with line and column of an offset.
  [[noreturn]] void refuse(std::size_t offset, std::string_view what) const;

 private:
  [[noreturn]] void broken(std::string_view expected) const;
  void skip_blanks();
  [[nodiscard]] char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void expect(char c);
  void word(std::string_view word);
  void digits();
  void number();
  void escape(std::string& out);
  std::string quoted_string();

  std::string_view text_;
  Lines lines_;
  std::size_t at_ = 0;
  std::size_t key_at_ = 0;
  std::vector<bool> first_;  // by open array or object: whether no element has been read
};

}  // namespace stagecraft::formats
