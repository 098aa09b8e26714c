/// HttpRequest holds what the answer to a request may depend on, and is read from the request's
/// head.
///
/// HttpServer reads one for each connection. Pure.
/// HQ-1: whatever strangers send costs time in proportion to its length, and no deep stack.
///
/// Source: RFC 9112, sections 2 to 6; targets in origin form alone, headers without folded lines
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace stagecraft {

/// Absent things are empty.
struct HttpRequest {
  std::string method = {};
  std::string path = {};    ///< as it came, without the query
  std::string host = {};    ///< the header
  std::string origin = {};  ///< the header
  std::string bearer = {};  ///< of `Authorization: Bearer ...`
  std::string token = {};   ///< the query's first `token`, as it came
  bool has_body = false;
};

/// Reads a request line and headers, up to and with the empty line after them. Returns nothing if
/// they are malformed, or have one of the headers above twice.
[[nodiscard]] std::optional<HttpRequest> parse_http_request(std::string_view head);

}  // namespace stagecraft
