/// render_run_page writes the page of a watched run, which shows its state and follows it.
///
/// The page's parts are in render/html/run_page/. It talks to the server that sent it, and to no
/// other: it follows /events, and posts the wishes of its buttons. After the run's end it keeps the
/// last state. Pure.
#pragma once

#include <string>
#include <string_view>

namespace stagecraft {

/// Returns the page. `state`: a JSON object with the fields of docs/json.md. Keeps H-1 (html.h).
[[nodiscard]] std::string render_run_page(std::string_view title, std::string_view state);

}  // namespace stagecraft
