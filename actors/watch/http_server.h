/// HttpServer answers small HTTP requests on one address, within fixed bounds.
///
/// Watch makes one. Its threads are its own: one accepts, kHttpConnections answer. Its handler runs
/// on them, several at once; what it throws ends its connection alone.
/// VW-1: no peer costs more than kHttpConnections threads, and kHttpRequestBytes and an answer for
///       each.
///         Further connections are closed at once, longer requests are not read.
///         A request that has not come within kHttpPatience is dropped. So is an answer of which
///         its peer takes nothing within kHttpPatience, or not all within kHttpLongest; in a
///         stream, this holds for each text.
///         A connection carries one request. Bodies are not read.
///         Over TLS the handshake counts as a part of the request (HY-1), and costs what OpenSSL
///         takes for one, which is at most 128 KiB for a message and its buffers.
/// VW-2: destroying it ends all connections within a second, beside a handler that still runs.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "stagecraft/actors/watch/http_connection.h"
#include "stagecraft/actors/watch/http_request.h"
#include "stagecraft/actors/watch/http_tls.h"

namespace stagecraft {

inline constexpr std::size_t kHttpConnections = 16;

struct HttpAnswer {
  int status = 200;
  std::string type = {};
  std::string body = {};
  /// If set, it is called instead of `body` being sent: each text that it returns is sent, until it
  /// returns nothing. It returns at least once a second, if only an empty text.
  std::function<std::optional<std::string>()> stream = {};
  std::shared_ptr<const void> held = {};  ///< lives until the answer was sent
};

using HttpHandler = std::function<HttpAnswer(const HttpRequest&)>;

class HttpServer {
 public:
  /// Listens at once. `address`: in digits; `port` 0: any; `tls`: answers over TLS alone, by this,
  /// which outlives the server; null: plainly. Malformed requests get 400 and do not reach the
  /// handler.
  /// Errors: UsageArgument for an address that cannot be listened on.
  HttpServer(const std::string& address,
             int port,
             HttpHandler handler,
             const HttpTls* tls = nullptr);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  [[nodiscard]] int port() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stagecraft
