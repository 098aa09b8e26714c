/// JsonReader: a JSON text read from front to back, value by value, each with its line and column.
///
/// For schedule files, which are long and simple: no tree is built, so memory is in proportion to
/// what the caller keeps, and every complaint says where. The caller asks for what it expects and
/// skips the rest; all of it is checked to be JSON. Views the text, which must outlive it.
/// J-1: nesting is limited, so nothing recurses without bound.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stagecraft/scheduler/formats/cell_text.h"

namespace stagecraft::formats {

class JsonReader {
 public:
  enum class Kind { Null, Boolean, Number, String, Array, Object };

  explicit JsonReader(std::string_view text);

  /// The kind of the next value.
  [[nodiscard]] Kind next();
  /// Reads the next value; nothing where it is of another kind, or a number that is no int.
  std::optional<int> integer();
  std::optional<std::string> string();
  /// Reads the next value whatever it is and returns its text.
  std::string_view skip();

  /// Opens an array or object. Requires: next() is of that kind. Then its elements are read one by
  /// one: next_element() or next_key() says whether there is another, and closes it where not.
  void open();
  [[nodiscard]] bool next_element();
  [[nodiscard]] std::optional<std::string> next_key();
  /// Errors: ScheduleParse when anything but blanks follows.
  void finish();

  /// Where the latest key stands.
  [[nodiscard]] std::size_t key_offset() const { return key_at_; }
  /// Where the next value starts.
  [[nodiscard]] std::size_t offset();
  /// Line and column of an offset.
  [[nodiscard]] Location location(std::size_t offset) const;
  /// Errors: ScheduleParse, always, with line and column of an offset.
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
