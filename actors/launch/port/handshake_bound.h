/// HandshakeBound watches the bytes that a peer sends before TLS encrypts them, and refuses a
/// handshake message that announces more than a member's ever has.
///
/// OpenSSL takes memory for a message when its length is announced: up to 128 KiB for a
/// ClientHello, of everybody who reaches the port. Each TlsSession has one, on the thread of CAF's
/// loop. Pure.
/// Source: RFC 8446, sections 4 (message: type, 3 bytes of length) and 5.1 (record: type, 2 bytes
///         of version, 2 bytes of length).
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace stagecraft {

/// The longest accepted message. A member's ClientHello has 0.3 KiB, its certificates 1 KiB.
inline constexpr std::size_t kMostOfHandshakeMessage = std::size_t{16} << 10U;

class HandshakeBound {
 public:
  /// Takes the next bytes of the connection. Returns false if they announce too long a message;
  /// then the connection has to end.
  [[nodiscard]] bool take(std::string_view bytes);

 private:
  [[nodiscard]] bool take_of_record(std::string_view& bytes);

  std::array<unsigned char, 5> record_{};   ///< the header of the current record
  std::size_t record_has_ = 0;              ///< bytes of that header
  std::size_t record_left_ = 0;             ///< bytes of its contents that have not come
  std::array<unsigned char, 4> message_{};  ///< the header of the current message
  std::size_t message_has_ = 0;
  std::size_t message_left_ = 0;
  bool is_encrypted_ = false;  ///< no more can be seen
};

}  // namespace stagecraft
