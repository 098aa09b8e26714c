#include "stagecraft/actors/launch/port/handshake_bound.h"

#include <string>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

std::string big_endian(std::size_t value, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) {
    text += static_cast<char>((value >> (8 * i)) & 0xffU);
  }
  return text;
}

std::string record(char type, const std::string& contents) {
  return std::string(1, type) + "\x03\x03" + big_endian(contents.size(), 2) + contents;
}

std::string message(std::size_t announced, std::size_t sent) {
  return "\x01" + big_endian(announced, 3) + std::string(sent, 'x');
}

constexpr char kHandshake = 22, kChangeCipher = 20, kEncrypted = 23;

/// Returns whether all bytes are taken, in parts of this size.
bool takes(const std::string& bytes, std::size_t part) {
  HandshakeBound bound;
  for (std::size_t at = 0; at < bytes.size(); at += part) {
    if (!bound.take(std::string_view(bytes).substr(at, part))) {
      return false;
    }
  }
  return true;
}

TEST_CASE("a handshake message of a member's length is taken, however it is cut",
          "[actors][launch][hostile]") {
  const std::string hello = record(kHandshake, message(300, 300));
  const std::string both = record(kHandshake, message(10, 10) + message(7, 7));
  const std::string over_records = record(kHandshake, message(300, 100)) +
                                   record(kHandshake, std::string(200, 'x')) +
                                   record(kHandshake, message(20, 20));
  const std::string in_pieces = record(kHandshake, message(300, 0).substr(0, 1)) +
                                record(kHandshake, message(300, 300).substr(1));
  const std::string longest =
      record(kHandshake, message(kMostOfHandshakeMessage, 16'000)) +
      record(kHandshake, std::string(kMostOfHandshakeMessage - 16'000, 'x'));
  for (const std::string& bytes : {hello, both, over_records, in_pieces, longest}) {
    for (const std::size_t part : {std::size_t{1}, std::size_t{3}, std::size_t{7}, bytes.size()}) {
      CAPTURE(bytes.size(), part);
      CHECK(takes(bytes, part));
    }
  }
}

TEST_CASE("an announcement of a longer message is refused with its last byte, also of a later one",
          "[actors][launch][hostile]") {
  const std::string announcement = message(kMostOfHandshakeMessage + 1, 0);
  const std::string first = record(kHandshake, announcement);
  const std::string later = record(kHandshake, message(300, 300)) + record(kChangeCipher, "\x01") +
                            record(kHandshake, announcement);
  const std::string hidden = record(kHandshake, message(5, 5) + announcement);
  const std::string in_pieces =
      record(kHandshake, announcement.substr(0, 2)) + record(kHandshake, announcement.substr(2));
  for (const std::string& bytes : {first, later, hidden, in_pieces}) {
    for (const std::size_t part : {std::size_t{1}, std::size_t{3}, bytes.size()}) {
      CAPTURE(bytes.size(), part);
      CHECK_FALSE(takes(bytes, part));
    }
    CHECK(takes(bytes.substr(0, bytes.size() - 1), 1));
  }
}

TEST_CASE("what is encrypted is not looked at", "[actors][launch][hostile]") {
  const std::string secret = message(kMostOfHandshakeMessage + 1, 0);
  CHECK(takes(record(kHandshake, message(300, 300)) + record(kEncrypted, secret) + secret, 1));
  CHECK(takes(record(kChangeCipher, secret), 1));  // no handshake message
}

TEST_CASE("bytes that are no TLS are left to TLS", "[actors][launch][hostile]") {
  CHECK(takes(std::string("GET / HTTP/1.1\r\n\r\n"), 1));
  CHECK(takes(std::string(100, '\0'), 1));
  CHECK(takes("", 1));
}

}  // namespace
}  // namespace stagecraft
