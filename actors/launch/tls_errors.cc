#include "stagecraft/actors/launch/tls_errors.h"

#include <dlfcn.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

namespace {

/// OpenSSL's own, behind the one that this program defines.
template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

// Keeps TE-1.
extern "C" {

[[gnu::visibility("default")]] int SSL_read(SSL* connection, void* bytes, int size) {
  static auto* const read = next<int(SSL*, void*, int)>("SSL_read");
  ERR_clear_error();
  return read(connection, bytes, size);
}

[[gnu::visibility("default")]] int SSL_write(SSL* connection, const void* bytes, int size) {
  static auto* const write = next<int(SSL*, const void*, int)>("SSL_write");
  ERR_clear_error();
  return write(connection, bytes, size);
}

[[gnu::visibility("default")]] int SSL_accept(SSL* connection) {
  static auto* const accept = next<int(SSL*)>("SSL_accept");
  ERR_clear_error();
  return accept(connection);
}

[[gnu::visibility("default")]] int SSL_connect(SSL* connection) {
  static auto* const connect = next<int(SSL*)>("SSL_connect");
  ERR_clear_error();
  return connect(connection);
}

}  // extern "C"

namespace stagecraft {

void keep_tls_errors_apart() {}

}  // namespace stagecraft
