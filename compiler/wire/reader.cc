#include "stagecraft/compiler/wire/reader.h"

#include <array>
#include <bit>
#include <limits>

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft::wire {
namespace {

constexpr std::array<std::string_view, 9> kKinds{
    "nil", "false", "true", "a number", "a number", "a float", "a text", "an array", "a map"};

[[noreturn]] void refuse_bytes(const std::string& found) {
  throw Error(
      Errc::WireFormat,
      fmt::format("these bytes are no message of Stagecraft: {}; both ends must be the same "
                  "version, and nothing between them may change what is sent",
                  found));
}

/// The integer that `size` bytes hold in two's complement.
std::int64_t with_sign(std::uint64_t bits, std::size_t size) {
  const std::size_t unused = 64 - 8 * size;
  return static_cast<std::int64_t>(bits << unused) >> unused;
}

}  // namespace

void Reader::refuse(const std::string& found) const {
  refuse_bytes(fmt::format("at byte {} of {}: {}", begin_, bytes_.size(), found));
}

void Reader::refuse(std::string_view wanted, const Token& found) const {
  refuse(
      fmt::format("expected {}, found {}", wanted, kKinds[static_cast<std::size_t>(found.kind)]));
}

void Reader::need(std::uint64_t count) const {
  if (count > bytes_.size() - next_) {
    refuse_bytes(fmt::format("they end within a value, after {} bytes", bytes_.size()));
  }
}

std::uint64_t Reader::big_endian(std::size_t size) {
  need(size);
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i) {
    value = value << 8U | static_cast<unsigned char>(bytes_[next_++]);
  }
  return value;
}

/// Keeps WR-1: every value that is claimed has a byte at least.
Reader::Token Reader::list(Kind kind, std::uint64_t count) {
  claimed_ += kind == Kind::Map ? 2 * count : count;
  if (claimed_ > bytes_.size()) {
    refuse_bytes(fmt::format(
        "their lists claim {} values or more, and there are {} bytes", claimed_, bytes_.size()));
  }
  return {kind, count};
}

/// The short forms, which have their payload within the mark.
Reader::Token Reader::take() {
  begin_ = next_;
  const auto mark = static_cast<unsigned char>(big_endian(1));
  if (mark < 0x80) {
    return {Kind::Natural, mark};
  }
  if (mark < 0x90) {
    return list(Kind::Map, mark & 0x0FU);
  }
  if (mark < 0xa0) {
    return list(Kind::Array, mark & 0x0FU);
  }
  if (mark < 0xc0) {
    return {Kind::Text, mark & 0x1FU};
  }
  if (mark >= 0xe0) {
    return {Kind::Negative, static_cast<std::uint64_t>(with_sign(mark, 1))};
  }
  return take_marked(mark);
}

Reader::Token Reader::take_marked(unsigned char mark) {
  switch (mark) {
    case 0xc0:
      return {Kind::Nil};
    case 0xc2:
      return {Kind::False};
    case 0xc3:
      return {Kind::True};
    case 0xcb:
      return {Kind::Number, big_endian(8)};
    case 0xcc:
    case 0xcd:
    case 0xce:
    case 0xcf:
      return {Kind::Natural, big_endian(std::size_t{1} << (mark - 0xccU))};
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3: {
      const std::size_t size = std::size_t{1} << (mark - 0xd0U);
      const std::int64_t value = with_sign(big_endian(size), size);
      return {value < 0 ? Kind::Negative : Kind::Natural, static_cast<std::uint64_t>(value)};
    }
    case 0xd9:
    case 0xda:
    case 0xdb:
      return {Kind::Text, big_endian(std::size_t{1} << (mark - 0xd9U))};
    case 0xdc:
    case 0xdd:
      return list(Kind::Array, big_endian(std::size_t{2} << (mark - 0xdcU)));
    case 0xde:
    case 0xdf:
      return list(Kind::Map, big_endian(std::size_t{2} << (mark - 0xdeU)));
    case 0xc1:
      refuse("it begins no value of msgpack");
    case 0xc4:
    case 0xc5:
    case 0xc6:
      refuse("it begins binary data");
    case 0xca:
      refuse("it begins a float of 32 bits");
    default:
      refuse("it begins an extension type");
  }
}

bool Reader::take_nil() {
  const bool nil = next_ < bytes_.size() && bytes_[next_] == '\xc0';
  next_ += nil ? 1 : 0;
  return nil;
}

bool Reader::boolean() {
  const Token token = take();
  if (token.kind != Kind::True && token.kind != Kind::False) {
    refuse("true or false", token);
  }
  return token.kind == Kind::True;
}

std::int64_t Reader::integer() {
  const Token token = take();
  if (token.kind == Kind::Natural) {
    if (token.payload > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      refuse(fmt::format("the number {} does not fit", token.payload));
    }
  } else if (token.kind != Kind::Negative) {
    refuse("an integer", token);
  }
  return static_cast<std::int64_t>(token.payload);
}

std::uint64_t Reader::natural() {
  const Token token = take();
  if (token.kind == Kind::Negative) {
    refuse(fmt::format("the number {} does not fit", static_cast<std::int64_t>(token.payload)));
  }
  if (token.kind != Kind::Natural) {
    refuse("a natural number", token);
  }
  return token.payload;
}

double Reader::number() {
  const Token token = take();
  if (token.kind != Kind::Number) {
    refuse("a float", token);
  }
  return std::bit_cast<double>(token.payload);
}

std::string_view Reader::text() {
  const Token token = take();
  if (token.kind != Kind::Text) {
    refuse("a text", token);
  }
  need(token.payload);
  const std::string_view text = bytes_.substr(next_, token.payload);
  next_ += text.size();
  return text;
}

std::size_t Reader::array() {
  const Token token = take();
  if (token.kind != Kind::Array) {
    refuse("an array", token);
  }
  return token.payload;
}

std::size_t Reader::map() {
  const Token token = take();
  if (token.kind != Kind::Map) {
    refuse("a map", token);
  }
  return token.payload;
}

void Reader::array_of(std::size_t count, std::string_view what) {
  const std::size_t found = array();
  if (found != count) {
    refuse(fmt::format("{} has {} values, not {}", what, count, found));
  }
}

void Reader::end() const {
  if (next_ != bytes_.size()) {
    refuse_bytes(fmt::format("{} bytes are left behind its end", bytes_.size() - next_));
  }
}

}  // namespace stagecraft::wire
