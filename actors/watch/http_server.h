/// HttpServer answers small HTTP requests on one address, within fixed bounds.
///
/// Watch makes one. Its threads are its own: one accepts, kHttpConnections answer. Its handler runs
/// on them, several at once.
/// VW-1: no peer costs more than kHttpConnections threads, and kHttpRequestBytes and an answer for
///       each: further connections are closed at once, longer requests are not read, a request that
///       has not come within kHttpPatience is dropped, and so is an answer that its peer does not
///       take within it. A connection carries one request. Bodies are refused unread.
/// VW-2: destroying it ends all connections within a second, beside a handler that still runs.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace stagecraft {

inline constexpr std::size_t kHttpConnections = 16;
inline constexpr std::size_t kHttpRequestBytes = std::size_t{16} << 10U;
inline constexpr std::chrono::seconds kHttpPatience{5};

/// HttpRequest holds what an answer may depend on; absent things are empty.
struct HttpRequest {
  std::string method;
  std::string path;
  std::string host;    ///< the header; empty if there is not exactly one
  std::string origin;  ///< the header
  std::string bearer;  ///< of `Authorization: Bearer ...`
  std::string token;   ///< the query's `token`
};

struct HttpAnswer {
  int status = 200;
  std::string type = {};
  std::string body = {};
  /// If set, it is called instead of `body` being sent: each text that it returns is sent, until it
  /// returns nothing. It returns at least once a second, if only an empty text.
  std::function<std::optional<std::string>()> stream = {};
};

using HttpHandler = std::function<HttpAnswer(const HttpRequest&)>;

class HttpServer {
 public:
  /// Listens at once. `address`: in digits; `port` 0: any.
  /// Errors: UsageArgument for an address that cannot be listened on.
  HttpServer(const std::string& address, int port, HttpHandler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  [[nodiscard]] int port() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stagecraft
