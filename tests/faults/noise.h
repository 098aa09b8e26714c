/// Noise opens connections of an outsider to a cluster.
///
/// Each connection sends garbage, HTTP, half a TLS or ZeroMQ greeting, or nothing, and stays open
/// for as long as the object lives.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace stagecraft::tests {

class Noise {
 public:
  Noise() = default;
  ~Noise();
  Noise(const Noise&) = delete;
  Noise& operator=(const Noise&) = delete;

  /// Opens one more connection to a port, of this host unless an address is named. Ignores
  /// connections that fail: a refusal is the right answer.
  void make(std::uint16_t port, std::mt19937_64& random, const std::string& address = "127.0.0.1");
  /// Opens one and sends these bytes.
  void say(const std::string& bytes, std::uint16_t port, const std::string& address);

 private:
  std::vector<int> open_;
};

}  // namespace stagecraft::tests
