/// WatchClient asks a watched run, by the link that `stagecraft train --serve` printed.
///
/// Single-threaded. Each call makes connections of its own, for some seconds, until it is answered.
/// WCL-1: over https nothing is sent, not even the path, before the certificate is known to be
///        right: by the fingerprint in the link, or, without one, by the authorities that this host
///        trusts.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace stagecraft::tools {

class WatchClient {
 public:
  /// Errors: UsageArgument for a text that is no such link.
  explicit WatchClient(const std::string& link);

  /// Returns the state (docs/json.md).
  /// Errors: UsageArgument if the link's token is not that of the run, and for another certificate
  /// than the link's; UsageFile for an answer of another program, and without any.
  [[nodiscard]] nlohmann::ordered_json state() const;

  /// Posts a wish: "stop", "checkpoint". Returns why the run does not follow it; empty if it does.
  /// Errors: those of state().
  [[nodiscard]] std::string wish(const std::string& name) const;

 private:
  template <class Ask>
  [[nodiscard]] nlohmann::ordered_json ask(Ask&& ask_through) const;

  bool has_tls_ = false;
  std::string host_;  ///< without brackets
  int port_ = 0;
  std::string place_;  ///< as links have it, "[::1]:8080"
  std::string token_;
  std::string fingerprint_;  ///< of the certificate; empty: authorities vouch for it
};

}  // namespace stagecraft::tools
