/// HttpConnection reads one request from a socket and writes the answer, with the bounds of VW-1,
/// over TLS or plainly.
///
/// HttpServer makes one for each connection, on the thread that answers it. That thread has SIGPIPE
/// blocked, because OpenSSL writes without MSG_NOSIGNAL.
/// HY-1: over TLS the handshake is part of reading the request, and must be done within its time.
///       Bytes of another protocol end the connection without an answer.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "stagecraft/actors/watch/http_tls.h"

namespace stagecraft {

inline constexpr std::size_t kHttpRequestBytes = std::size_t{16} << 10U;
inline constexpr std::chrono::seconds kHttpPatience{5};
inline constexpr std::chrono::seconds kHttpLongest{60};

/// How often a wait for a socket looks whether the server ends.
inline constexpr std::chrono::milliseconds kHttpLook{100};

class HttpConnection {
 public:
  /// `socket` does not block, and outlives this object. `tls` null: plainly. All waits end soon
  /// after `ending` is true. Errors: those of HttpTls::session.
  HttpConnection(int socket, const HttpTls* tls, const std::atomic<bool>& ending);

  /// Returns what the peer sends up to the end of the head, or kHttpRequestBytes of it; nothing if
  /// it does not come in time.
  [[nodiscard]] std::optional<std::string> read_head();

  /// Returns whether the peer has taken all of it: some within each kHttpPatience, all within
  /// kHttpLongest.
  [[nodiscard]] bool write(std::string_view text);

  /// Ends an answer that the peer has taken, and reads what it still sends, within the bounds: a
  /// connection that is closed before is reset, and the peer may lose the answer.
  void drain();

 private:
  using Time = std::chrono::steady_clock::time_point;

  /// Attempt is the result of a call that does not wait.
  struct Attempt {
    std::size_t bytes = 0;
    short waits_for = 0;  ///< what poll must find before the next one; 0: done, or at an end
  };

  [[nodiscard]] Attempt try_to_read(char* to, std::size_t size);
  [[nodiscard]] Attempt try_to_write(std::string_view text);
  [[nodiscard]] Attempt try_to_finish();
  /// Returns what OpenSSL says of a call that has returned `result`.
  [[nodiscard]] Attempt attempt_of(int result, std::size_t bytes) const;

  /// Calls `attempt` until it need not wait. Returns its bytes; 0 at the end of the connection,
  /// after a fault, and after the deadline.
  template <class Try>
  [[nodiscard]] std::size_t until_done(Try&& attempt, Time deadline) const;
  /// Reads within the bounds. Returns as above.
  [[nodiscard]] std::size_t read(char* to, std::size_t size, Time deadline);

  const int socket_;
  HttpTlsSession session_;  ///< null: plain
  const std::atomic<bool>& ending_;
  std::size_t left_ = kHttpRequestBytes;
};

}  // namespace stagecraft
