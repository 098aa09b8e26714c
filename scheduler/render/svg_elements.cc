#include "stagecraft/scheduler/render/svg_elements.h"

#include <fmt/format.h>

#include "stagecraft/scheduler/render/escape.h"

namespace stagecraft::drawing {

std::string svg_rectangle(double x, double y, double wide, double high, std::string_view look) {
  return fmt::format(
      R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" {}/>)", x, y, wide, high, look);
}

std::string svg_text(double x, double y, std::string_view look, std::string_view text) {
  return fmt::format(R"(<text x="{:.1f}" y="{:.1f}" {}>{}</text>)", x, y, look, escaped(text));
}

}  // namespace stagecraft::drawing
