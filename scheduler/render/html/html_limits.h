/// html_limits bounds the page that render_html() writes, so that a browser can show it.
#pragma once

#include <cstddef>

namespace stagecraft {

/// The most entries of a page. Such a page has 20 to 60 MB and still moves smoothly. More are
/// refused.
inline constexpr std::size_t kMaxHtmlEntries = 1'000'000;
/// Limits on listed violations and on their marked cells; further ones are counted.
inline constexpr std::size_t kMaxHtmlViolations = 1'000;
inline constexpr std::size_t kMaxHtmlMarks = 50'000;

}  // namespace stagecraft
