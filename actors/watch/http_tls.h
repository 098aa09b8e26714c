/// HttpTls holds what an HttpServer needs to answer over TLS: a key and a certificate that are made
/// for this one server, and are never on a disk.
///
/// Watch makes one for an address that other hosts reach. Thread: any, also several at once.
/// TW-1: a session is TLS 1.2 or 1.3, is not resumed, and takes nothing from its peer before the
///       handshake is done (no early data) and no second handshake after it.
#pragma once

#include <memory>
#include <string>

struct ssl_ctx_st;
struct ssl_st;

namespace stagecraft {

using HttpTlsSession = std::unique_ptr<ssl_st, void (*)(ssl_st*)>;

class HttpTls {
 public:
  /// Makes a certificate for a server at `host`, a name or an address in digits. It is valid for 90
  /// days; it ends with this object, because nobody else has its key.
  /// Errors: Internal, with OpenSSL's reason.
  explicit HttpTls(const std::string& host);

  /// Returns the SHA-256 of the certificate, "AB:CD:...".
  [[nodiscard]] const std::string& fingerprint() const { return fingerprint_; }

  /// Returns a server's session on a socket that does not block. Its handshake comes with the first
  /// bytes that are read. Errors: Internal.
  [[nodiscard]] HttpTlsSession session(int socket) const;

 private:
  std::unique_ptr<ssl_ctx_st, void (*)(ssl_ctx_st*)> context_;
  std::string fingerprint_;
};

}  // namespace stagecraft
