#include "stagecraft/compiler/wire/reader.h"

#include <array>
#include <bit>
#include <limits>

#include <fmt/format.h>
#include <msgpack.hpp>

#include "stagecraft/base/error.h"

namespace stagecraft::wire {
namespace {

constexpr std::array<std::string_view, 9> kKinds{
    "nil", "false", "true", "a number", "a number", "a float", "a text", "an array", "a map"};

[[noreturn]] void refuse_bytes(const std::string& found) {
  throw Error(
      Errc::WireFormat,
      fmt::format("these bytes are no message of Stagecraft: {}; both ends must be of the same "
                  "version, and nothing between them may change the bytes",
                  found));
}

/// Tokens makes tokens of the values that the parser meets; false stops the parser.
class Tokens : public msgpack::null_visitor {
 public:
  Tokens(std::string_view bytes, std::vector<Token>& tokens) : bytes_(bytes), tokens_(tokens) {}

  [[nodiscard]] const std::string& fault() const { return fault_; }

  bool visit_nil() { return add({Token::Kind::Nil}); }
  bool visit_boolean(bool v) { return add({v ? Token::Kind::True : Token::Kind::False}); }
  bool visit_positive_integer(std::uint64_t v) { return add({Token::Kind::Natural, 0, v}); }
  bool visit_negative_integer(std::int64_t v) {
    return add({Token::Kind::Negative, 0, static_cast<std::uint64_t>(v)});
  }
  bool visit_float64(double v) {
    return add({Token::Kind::Number, 0, std::bit_cast<std::uint64_t>(v)});
  }
  bool visit_str(const char* v, std::uint32_t size) {
    // The parser gives no place for an empty text.
    const auto at = size == 0 ? 0 : static_cast<std::uint64_t>(v - bytes_.data());
    return add({Token::Kind::Text, size, at});
  }
  bool start_array(std::uint32_t count) {
    return claim(count) && add({Token::Kind::Array, count, 0});
  }
  bool start_map(std::uint32_t count) {
    return claim(std::uint64_t{2} * count) && add({Token::Kind::Map, count, 0});
  }
  bool end_array() { return leave(); }
  bool end_map() { return leave(); }

  bool visit_float32(float) { return stop("it has a float of 32 bits"); }
  bool visit_bin(const char*, std::uint32_t) { return stop("it has binary data"); }
  bool visit_ext(const char*, std::uint32_t) { return stop("it has an extension type"); }

  void parse_error(std::size_t, std::size_t at) {
    fault_ = fmt::format("byte {} begins no value of msgpack", at);
  }
  void insufficient_bytes(std::size_t, std::size_t) {
    fault_ = fmt::format("they end within a value, after {} bytes", bytes_.size());
  }

 private:
  bool add(const Token& token) {
    tokens_.push_back(token);
    return true;
  }
  bool stop(std::string fault) {
    fault_ = std::move(fault);
    return false;
  }
  bool leave() {
    --depth_;
    return true;
  }
  /// Keeps WR-1: every value that is claimed takes at least one byte.
  bool claim(std::uint64_t count) {
    claimed_ += count;
    if (claimed_ > bytes_.size()) {
      return stop(fmt::format(
          "its lists claim {} values or more, and it has {} bytes", claimed_, bytes_.size()));
    }
    if (++depth_ > kDeepest) {
      return stop(fmt::format("its lists are nested deeper than {}", kDeepest));
    }
    return true;
  }

  std::string_view bytes_;
  std::vector<Token>& tokens_;
  std::uint64_t claimed_ = 0;
  std::size_t depth_ = 0;
  std::string fault_;
};

}  // namespace

Reader::Reader(std::string_view bytes) : bytes_(bytes) {
  if (bytes.empty()) {
    refuse_bytes("there are none");
  }
  Tokens tokens(bytes, tokens_);
  std::size_t end = 0;
  const bool whole = msgpack::parse(bytes.data(), bytes.size(), end, tokens);
  if (!whole || !tokens.fault().empty()) {
    refuse_bytes(tokens.fault().empty() ? "they cannot be parsed" : tokens.fault());
  }
  if (end != bytes.size()) {
    refuse_bytes(fmt::format("{} bytes follow its end", bytes.size() - end));
  }
}

void Reader::refuse(const std::string& found) const {
  refuse_bytes(fmt::format("at value {} of {}: {}", next_, tokens_.size(), found));
}

void Reader::refuse(std::string_view wanted, const Token& found) const {
  refuse(
      fmt::format("expected {}, found {}", wanted, kKinds[static_cast<std::size_t>(found.kind)]));
}

const Token& Reader::take(std::string_view wanted) {
  if (next_ == tokens_.size()) {
    refuse(fmt::format("expected {}, found the end", wanted));
  }
  return tokens_[next_++];
}

bool Reader::take_nil() {
  const bool nil = next_ < tokens_.size() && tokens_[next_].kind == Token::Kind::Nil;
  next_ += nil ? 1 : 0;
  return nil;
}

bool Reader::boolean() {
  const Token& token = take("true or false");
  if (token.kind != Token::Kind::True && token.kind != Token::Kind::False) {
    refuse("true or false", token);
  }
  return token.kind == Token::Kind::True;
}

std::int64_t Reader::integer() {
  const Token& token = take("an integer");
  if (token.kind == Token::Kind::Natural) {
    if (token.payload > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
      refuse(fmt::format("the number {} does not fit", token.payload));
    }
  } else if (token.kind != Token::Kind::Negative) {
    refuse("an integer", token);
  }
  return static_cast<std::int64_t>(token.payload);
}

std::uint64_t Reader::natural() {
  const Token& token = take("a natural number");
  if (token.kind == Token::Kind::Negative) {
    refuse(fmt::format("the number {} does not fit", static_cast<std::int64_t>(token.payload)));
  }
  if (token.kind != Token::Kind::Natural) {
    refuse("a natural number", token);
  }
  return token.payload;
}

double Reader::number() {
  const Token& token = take("a float");
  if (token.kind != Token::Kind::Number) {
    refuse("a float", token);
  }
  return std::bit_cast<double>(token.payload);
}

std::string_view Reader::text() {
  const Token& token = take("a text");
  if (token.kind != Token::Kind::Text) {
    refuse("a text", token);
  }
  return bytes_.substr(token.payload, token.size);
}

std::size_t Reader::array() {
  const Token& token = take("an array");
  if (token.kind != Token::Kind::Array) {
    refuse("an array", token);
  }
  return token.size;
}

std::size_t Reader::map() {
  const Token& token = take("a map");
  if (token.kind != Token::Kind::Map) {
    refuse("a map", token);
  }
  return token.size;
}

void Reader::array_of(std::size_t count, std::string_view what) {
  const std::size_t found = array();
  if (found != count) {
    refuse(fmt::format("{} has {} values, not {}", what, count, found));
  }
}

void Reader::end() const {
  if (next_ != tokens_.size()) {
    refuse("more values than the message has");
  }
}

}  // namespace stagecraft::wire
