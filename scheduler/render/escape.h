/// escaped makes text safe as the content of an XML or HTML element. render_svg() and render_html()
/// use it. Pure.
#pragma once

#include <string>
#include <string_view>

namespace stagecraft::drawing {

/// Returns the text with '&', '<' and '>' as references, and with '?' for control characters, which
/// XML cannot hold.
[[nodiscard]] std::string escaped(std::string_view text);

}  // namespace stagecraft::drawing
