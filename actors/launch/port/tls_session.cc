#include "stagecraft/actors/launch/port/tls_session.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include "stagecraft/actors/security/certificate_facts.h"
#include "stagecraft/base/error.h"
#include "stagecraft/base/log.h"
#include "stagecraft/base/process/without_pipe_signal.h"

namespace stagecraft {
namespace {

void require_tls(bool done, const std::string& what) {
  if (!done) {
    std::array<char, 256> words{};
    ERR_error_string_n(ERR_get_error(), words.data(), words.size());
    throw Error(
        Errc::ClusterMember,
        fmt::format("TLS cannot use {} ({}): see stagecraft credentials show", what, words.data()));
  }
}

constexpr std::size_t kMostEarly = std::size_t{64} << 10U;

int ssl_size(std::size_t size) {
  return static_cast<int>(
      std::min<std::size_t>(size, static_cast<std::size_t>(std::numeric_limits<int>::max())));
}

/// Returns whether the call must only be repeated later.
bool waits(SSL* session, int result) {
  const int error = SSL_get_error(session, result);
  return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE;
}

}  // namespace

TlsContext::TlsContext(std::string certificate, std::string key, std::string authority)
    : certificate_(std::move(certificate)),
      key_(std::move(key)),
      authority_(std::move(authority)),
      context_(nullptr, &SSL_CTX_free) {
  read_at_ = stamp();
  read();
}

TlsContext::Stamp TlsContext::stamp() const {
  Stamp stamp{};
  std::size_t next = 0;
  for (const std::string* file : {&certificate_, &key_, &authority_}) {
    struct stat found {};
    if (stat(file->c_str(), &found) != 0) {
      throw Error(
          Errc::ClusterMember,
          fmt::format("{} cannot be read: {}", *file, std::generic_category().message(errno)));
    }
    stamp[next++] = found.st_mtim.tv_sec;
    stamp[next++] = found.st_mtim.tv_nsec;
    stamp[next++] = static_cast<std::int64_t>(found.st_ino);
    stamp[next++] = found.st_size;
  }
  return stamp;
}

void TlsContext::read() {
  ERR_clear_error();
  std::unique_ptr<ssl_ctx_st, void (*)(ssl_ctx_st*)> made(SSL_CTX_new(TLS_server_method()),
                                                          &SSL_CTX_free);
  SSL_CTX* const context = made.get();
  require_tls(context != nullptr, "this OpenSSL");
  require_tls(SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1, "version 1.3");
  require_tls(SSL_CTX_use_certificate_chain_file(context, certificate_.c_str()) == 1, certificate_);
  require_tls(SSL_CTX_use_PrivateKey_file(context, key_.c_str(), SSL_FILETYPE_PEM) == 1, key_);
  require_tls(SSL_CTX_load_verify_locations(context, authority_.c_str(), nullptr) == 1, authority_);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_mode(context,
                   SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                       SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_max_cert_list(context, static_cast<long>(kMostOfHandshakeMessage));  // keeps TLS-4
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);  // sessions are not resumed
  SSL_CTX_set_num_tickets(context, 0);
  context_ = std::move(made);
}

TlsHandle TlsContext::handle(int socket) {
  if (const Stamp now = stamp(); now != read_at_) {
    read();
    read_at_ = now;
  }
  ERR_clear_error();
  TlsHandle handle(SSL_new(context_.get()), &SSL_free);
  require_tls(handle != nullptr && SSL_set_fd(handle.get(), socket) == 1, "a connection");
  SSL_set_accept_state(handle.get());
  return handle;
}

TlsSession::TlsSession(TlsHandle handle,
                       Socket socket,
                       std::shared_ptr<WaitingSockets> waiting,
                       NodeGuard guard)
    : session_(std::move(handle)), waiting_(std::move(waiting)), guard_(std::move(guard)) {
  place_ = waiting_->insert(waiting_->end(), socket);
  watch_handshake();
}

void TlsSession::watch_handshake() {
  BIO* const bytes = SSL_get_rbio(session_.get());
  BIO_set_callback_arg(bytes, reinterpret_cast<char*>(&bound_));
  BIO_set_callback_ex(bytes,
                      [](BIO* bio,
                         int operation,
                         const char* read,
                         std::size_t /*size*/,
                         int /*argi*/,
                         long /*argl*/,
                         int result,
                         std::size_t* count) -> long {
                        if (operation != (BIO_CB_READ | BIO_CB_RETURN) || result <= 0) {
                          return result;
                        }
                        auto& bound = *reinterpret_cast<HandshakeBound*>(BIO_get_callback_arg(bio));
                        return bound.take({read, *count}) ? result : -1;
                      });
}

TlsSession::~TlsSession() {
  leave();
}

void TlsSession::leave() {
  if (waiting_ != nullptr) {
    waiting_->erase(place_);
    waiting_.reset();
  }
}

/// Returns success for a session that must be called again, as CAF's loop expects.
TlsSession::State TlsSession::shake_hands() {
  if (waiting_ == nullptr) {
    return worker_.empty() ? State::failure : State::success;
  }
  const int result = SSL_do_handshake(session_.get());
  if (result == 1) {
    BIO_set_callback_ex(SSL_get_rbio(session_.get()), nullptr);
    leave();
    return identify() ? State::success : State::failure;
  }
  if (waits(session_.get(), result)) {
    return State::success;
  }
  if (const long verified = SSL_get_verify_result(session_.get()); verified != X509_V_OK) {
    refuse(X509_verify_cert_error_string(verified));
  }
  return State::failure;
}

bool TlsSession::identify() {
  try {
    const security::CertificateFacts facts =
        security::facts_of(security::Certificate(SSL_get1_peer_certificate(session_.get())));
    worker_ = facts.role == security::Role::Worker ? facts.name : "";
    if (worker_.empty()) {
      refuse("its certificate is no worker's");
    }
  } catch (const std::exception& error) {
    refuse(error.what());
  }
  return !worker_.empty();
}

void TlsSession::refuse(std::string_view why) const {
  const std::int64_t times = guard_.count_refusal();
  if (is_logged(times)) {
    log(Level::Warning,
        "a connection is refused",
        {{"worker", worker_.empty() ? "unknown" : worker_}, {"why", why}, {"refused", times}});
  }
}

/// Keeps TLS-3.
bool TlsSession::send_early() {
  while (!early_.empty()) {
    const int count = SSL_write(session_.get(), early_.data(), ssl_size(early_.size()));
    if (count <= 0) {
      return waits(session_.get(), count);
    }
    early_.erase(0, static_cast<std::size_t>(count));
  }
  return true;
}

TlsSession::State TlsSession::read_some(std::size_t& result,
                                        Socket /*socket*/,
                                        void* into,
                                        std::size_t size) {
  const WithoutPipeSignal quiet;
  ERR_clear_error();  // keeps TLS-2
  result = 0;
  if (const State state = shake_hands(); state == State::failure || waiting_ != nullptr) {
    return state;
  }
  if (!send_early()) {
    return State::failure;
  }
  if (size == 0) {
    return State::indeterminate;
  }
  const int count = SSL_read(session_.get(), into, ssl_size(size));
  if (count > 0) {
    const std::string_view bytes(static_cast<const char*>(into), static_cast<std::size_t>(count));
    if (const std::string_view why = guard_.hear(worker_, bytes); !why.empty()) {
      refuse(why);
      worker_.clear();  // ends every later call too
      return State::failure;
    }
    result = bytes.size();
    return State::success;
  }
  return waits(session_.get(), count) ? State::success : State::failure;
}

TlsSession::State TlsSession::write_some(std::size_t& result,
                                         Socket /*socket*/,
                                         const void* from,
                                         std::size_t size) {
  const WithoutPipeSignal quiet;
  ERR_clear_error();
  result = 0;
  if (shake_hands() == State::failure) {
    return State::failure;
  }
  if (size == 0) {
    return State::indeterminate;
  }
  if (waiting_ != nullptr && early_.size() + size <= kMostEarly) {
    early_.append(static_cast<const char*>(from), size);
    guard_.say({static_cast<const char*>(from), size});
    result = size;
    return State::success;
  }
  if (waiting_ != nullptr) {
    return State::success;
  }
  if (!send_early()) {
    return State::failure;
  }
  if (!early_.empty()) {
    return State::success;
  }
  const int count = SSL_write(session_.get(), from, ssl_size(size));
  if (count > 0) {
    result = static_cast<std::size_t>(count);
    guard_.say({static_cast<const char*>(from), result});
    return State::success;
  }
  return waits(session_.get(), count) ? State::success : State::failure;
}

bool TlsSession::must_read_more(Socket /*socket*/, std::size_t threshold) {
  return static_cast<std::size_t>(SSL_pending(session_.get())) >= threshold;
}

}  // namespace stagecraft
