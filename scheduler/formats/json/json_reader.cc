#include "stagecraft/scheduler/formats/json/json_reader.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

namespace stagecraft::formats {
namespace {

constexpr std::size_t kDeepest = 64;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

}  // namespace

JsonReader::JsonReader(std::string_view text) : text_(text), lines_(text) {
  if (text_.starts_with("\xEF\xBB\xBF")) {
    at_ = 3;  // a byte order mark, which some editors write
  }
}

Location JsonReader::location(std::size_t offset) const {
  return lines_.location(offset);
}

void JsonReader::refuse(std::size_t offset, std::string_view what) const {
  fail(location(offset), what);
}

void JsonReader::broken(std::string_view expected) const {
  const std::string found = at_ < text_.size() ? quoted(text_.substr(at_, 1)) : "the end";
  refuse(at_, fmt::format("this is not JSON: expected {}, found {}", expected, found));
}

void JsonReader::skip_blanks() {
  while (at_ < text_.size() &&
         (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t')) {
    ++at_;
  }
}

std::size_t JsonReader::offset() {
  skip_blanks();
  return at_;
}

void JsonReader::expect(char c) {
  skip_blanks();
  if (peek() != c || at_ >= text_.size()) {
    broken(fmt::format("'{}'", c));
  }
  ++at_;
}

JsonReader::Kind JsonReader::next() {
  skip_blanks();
  switch (peek()) {
    case 'n':
      return Kind::Null;
    case 't':
    case 'f':
      return Kind::Boolean;
    case '"':
      return Kind::String;
    case '[':
      return Kind::Array;
    case '{':
      return Kind::Object;
    default:
      if (peek() == '-' || is_digit(peek())) {
        return Kind::Number;
      }
      broken("a value");
  }
}

void JsonReader::word(std::string_view word) {
  if (!text_.substr(at_).starts_with(word)) {
    broken(word);
  }
  at_ += word.size();
}

void JsonReader::digits() {
  if (!is_digit(peek())) {
    broken("a digit");
  }
  while (is_digit(peek())) {
    ++at_;
  }
}

void JsonReader::number() {
  at_ += peek() == '-' ? 1 : 0;
  if (peek() == '0') {
    ++at_;  // no digit may follow
  } else {
    digits();
  }
  if (peek() == '.') {
    ++at_;
    digits();
  }
  if (peek() == 'e' || peek() == 'E') {
    ++at_;
    at_ += peek() == '+' || peek() == '-' ? 1 : 0;
    digits();
  }
}

/// Replaces characters beyond ASCII by '?': none of our words has any.
void JsonReader::escape(std::string& out) {
  constexpr std::string_view kLetters = "\"\\/bfnrt";
  constexpr std::string_view kMeant = "\"\\/\b\f\n\r\t";
  ++at_;
  const std::size_t letter = kLetters.find(peek());
  if (at_ < text_.size() && letter != std::string_view::npos) {
    out += kMeant[letter];
    ++at_;
    return;
  }
  if (peek() != 'u') {
    broken("an escape such as \\n or \\u0041");
  }
  ++at_;
  const std::string_view hex = text_.substr(at_, 4);
  unsigned code = 0;
  const auto [end, error] = std::from_chars(hex.data(), hex.data() + hex.size(), code, 16);
  if (error != std::errc() || end != hex.data() + 4 || hex.size() != 4) {
    broken("four hexadecimal digits");
  }
  out += code < 0x80 ? static_cast<char>(code) : '?';
  at_ += 4;
}

std::string JsonReader::quoted_string() {
  expect('"');
  std::string out;
  while (peek() != '"' || at_ >= text_.size()) {
    if (at_ >= text_.size() || static_cast<unsigned char>(peek()) < 0x20) {
      broken("'\"' at the end of a string");
    }
    if (peek() == '\\') {
      escape(out);
    } else {
      out += text_[at_++];
    }
  }
  ++at_;
  return out;
}

std::optional<int> JsonReader::integer() {
  if (next() != Kind::Number) {
    (void)skip();
    return std::nullopt;
  }
  const std::string_view number = skip();
  int value = 0;
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
  const bool whole = error == std::errc() && end == number.data() + number.size();
  return whole ? std::optional<int>(value) : std::nullopt;
}

std::optional<std::string> JsonReader::string() {
  if (next() != Kind::String) {
    (void)skip();
    return std::nullopt;
  }
  return quoted_string();
}

std::string_view JsonReader::skip() {
  const std::size_t begin = offset();
  switch (next()) {
    case Kind::Null:
      word("null");
      break;
    case Kind::Boolean:
      word(peek() == 't' ? "true" : "false");
      break;
    case Kind::Number:
      number();
      break;
    case Kind::String:
      (void)quoted_string();
      break;
    case Kind::Array:
      open();
      while (next_element()) {
        (void)skip();
      }
      break;
    case Kind::Object:
      open();
      while (next_key()) {
        (void)skip();
      }
      break;
  }
  return text_.substr(begin, at_ - begin);
}

void JsonReader::open() {
  if (first_.size() >= kDeepest) {
    refuse(at_,
           fmt::format("values are nested more than {} deep, which no schedule needs", kDeepest));
  }
  ++at_;
  first_.push_back(true);
}

bool JsonReader::next_element() {
  skip_blanks();
  const bool first = first_.back();
  first_.back() = false;
  if (peek() == ']') {
    ++at_;
    first_.pop_back();
    return false;
  }
  if (!first) {
    if (peek() != ',') {
      broken("',' or ']'");
    }
    ++at_;
  }
  (void)next();  // the next token must be a value
  return true;
}

std::optional<std::string> JsonReader::next_key() {
  skip_blanks();
  const bool first = first_.back();
  first_.back() = false;
  if (peek() == '}') {
    ++at_;
    first_.pop_back();
    return std::nullopt;
  }
  if (!first) {
    if (peek() != ',') {
      broken("',' or '}'");
    }
    ++at_;
  }
  key_at_ = offset();
  std::string key = quoted_string();
  expect(':');
  return key;
}

void JsonReader::finish() {
  skip_blanks();
  if (at_ < text_.size()) {
    broken("the end");
  }
}

}  // namespace stagecraft::formats
