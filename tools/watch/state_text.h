/// state_text writes the state of a watched run for a terminal.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace stagecraft::tools {

/// Return the state of docs/json.md in one line, and with a table of ranks, the causes of waits, a
/// late step's wait graph and the newest checkpoints and messages. Both end in a newline.
[[nodiscard]] std::string state_line(const nlohmann::ordered_json& state);
[[nodiscard]] std::string state_text(const nlohmann::ordered_json& state);

}  // namespace stagecraft::tools
