#include "stagecraft/actors/watch/http_tls.h"

#include <chrono>

#include <openssl/ssl.h>

#include "stagecraft/actors/security/certificate_parts.h"
#include "stagecraft/actors/security/server_certificate.h"

namespace stagecraft {
namespace {

/// Clocks of hosts differ.
constexpr std::chrono::minutes kValidBefore{5};
constexpr std::chrono::hours kValidFor{90 * 24};

}  // namespace

HttpTls::HttpTls(const std::string& host)
    : context_(SSL_CTX_new(TLS_server_method()), &SSL_CTX_free) {
  const auto now = std::chrono::system_clock::now();
  const security::PrivateKey key = security::new_key();
  const security::Certificate certificate =
      security::new_server_certificate(key, host, now - kValidBefore, now + kValidFor);
  fingerprint_ = security::fingerprint_of(*certificate);
  SSL_CTX* const context = context_.get();
  security::require_openssl(context != nullptr &&
                                SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1 &&
                                SSL_CTX_use_certificate(context, certificate.get()) == 1 &&
                                SSL_CTX_use_PrivateKey(context, key.get()) == 1,
                            "a server for TLS");
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, 0);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE);
  // A call must return after each record, however fast they come, so that deadlines are looked at.
  SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);
}

HttpTlsSession HttpTls::session(int socket) const {
  HttpTlsSession made(SSL_new(context_.get()), &SSL_free);
  security::require_openssl(made != nullptr && SSL_set_fd(made.get(), socket) == 1,
                            "a session of TLS");
  SSL_set_accept_state(made.get());
  return made;
}

}  // namespace stagecraft
