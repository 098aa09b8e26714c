/// WatchClient asks a watched run, by the link that `stagecraft train --serve` printed.
///
/// Single-threaded. Each call is one connection.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

namespace stagecraft::tools {

class WatchClient {
 public:
  /// Errors: UsageArgument for a text that is no such link.
  explicit WatchClient(const std::string& link);

  /// Returns the state (docs/json.md), or nothing if nobody answers there.
  /// Errors: UsageArgument if the link's token is not that of the run; UsageFile for an answer of
  /// another program.
  [[nodiscard]] std::optional<nlohmann::ordered_json> state() const;

  /// Posts a wish: "stop", "checkpoint". Returns why the run does not follow it; empty if it does.
  /// Errors: those of state(); UsageFile if nobody answers.
  [[nodiscard]] std::string wish(const std::string& name) const;

 private:
  std::string host_;  ///< without brackets
  int port_ = 0;
  std::string place_;  ///< as links have it, "[::1]:8080"
  std::string token_;
};

/// Throws UsageFile: nobody answers at the link.
[[noreturn]] void refuse_without_answer();

}  // namespace stagecraft::tools
