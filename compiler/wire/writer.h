/// Writer writes values as msgpack, one after the other, into a string.
///
/// It knows the form of single values, not their meaning: fields.h builds records of them. Equal
/// values make equal bytes.
/// WW-1: a double keeps all its bits: every value is written as float64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace stagecraft::wire {

class Writer {
 public:
  void nil();
  void boolean(bool value);
  void integer(std::int64_t value);
  void natural(std::uint64_t value);
  void number(double value);
  void text(std::string_view value);
  /// Writes the head of a list: `count` values of the list follow; for a map, twice as many.
  void array(std::size_t count);
  void map(std::size_t count);

  [[nodiscard]] std::string take();

 private:
  std::string bytes_;
};

}  // namespace stagecraft::wire
