#include "stagecraft/tests/faults/noise.h"

#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include <arpa/inet.h>
#include <netinet/in.h>

namespace stagecraft::tests {
namespace {

std::string random_bytes(std::mt19937_64& random) {
  std::string bytes(1 + random() % 4096, '\0');
  for (char& byte : bytes) {
    byte = static_cast<char>(random());
  }
  return bytes;
}

/// Returns a record that announces 512 bytes of a ClientHello and has nine of them.
std::string half_tls_hello() {
  return {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\x2a\x2a\x2a", 14};
}

/// Returns the greeting of ZMTP 3.0 with the mechanism NULL, and a frame that announces 2^62 bytes.
std::string zeromq_greeting() {
  std::string greeting("\xff\0\0\0\0\0\0\0\x01\x7f\x03\0NULL", 16);
  greeting.resize(64);
  return greeting + std::string("\x06\x40\0\0\0\0\0\0\0", 9);
}

std::string something_to_say(std::mt19937_64& random) {
  switch (random() % 6) {
    case 0:
      return "GET / HTTP/1.1\r\nHost: localhost\r\nUser-Agent: curl/7.88.1\r\n\r\n";
    case 1:
      return half_tls_hello();
    case 2:
      return zeromq_greeting();
    case 3:
      return "";
    default:
      return random_bytes(random);
  }
}

}  // namespace

Noise::~Noise() {
  for (const int connection : open_) {
    close(connection);
  }
}

void Noise::make(std::uint16_t port, std::mt19937_64& random, const std::string& address) {
  say(something_to_say(random), port, address);
  if (!open_.empty() && random() % 4 == 0) {
    close(open_.back());  // at once, without reading an answer
    open_.pop_back();
  }
}

void Noise::say(const std::string& bytes, std::uint16_t port, const std::string& address) {
  const int connection = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connection < 0) {
    return;
  }
  sockaddr_in there{};
  there.sin_family = AF_INET;
  there.sin_port = htons(port);
  inet_pton(AF_INET, address.c_str(), &there.sin_addr);
  if (connect(connection, reinterpret_cast<const sockaddr*>(&there), sizeof there) == 0) {
    static_cast<void>(send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
  }
  open_.push_back(connection);
}

}  // namespace stagecraft::tests
