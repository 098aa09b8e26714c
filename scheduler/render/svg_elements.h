/// svg_elements writes the elements that all SVG pictures consist of. Private to render/. Pure.
#pragma once

#include <string>
#include <string_view>

namespace stagecraft::drawing {

/// Returns a rectangle. `look`: further attributes. Lengths in CSS pixels.
[[nodiscard]] std::string svg_rectangle(
    double x, double y, double wide, double high, std::string_view look);

/// Returns a text, which it escapes.
[[nodiscard]] std::string svg_text(double x,
                                   double y,
                                   std::string_view look,
                                   std::string_view text);

}  // namespace stagecraft::drawing
