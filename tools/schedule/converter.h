/// convert_svg: an SVG picture as PDF or PNG, by a program of this machine.
#pragma once

#include <string>
#include <string_view>

namespace stagecraft::tools {

enum class PictureFormat { Pdf, Png };

/// Returns the bytes that the first of rsvg-convert, inkscape and cairosvg on PATH makes of it; a
/// PNG has two pixels for one of the picture, so that it prints well.
/// Errors: UsageFile where there is none, with what to install, and when it fails, with what it
/// said. Thread: any; waits for the program.
[[nodiscard]] std::string convert_svg(std::string_view svg, PictureFormat format);

}  // namespace stagecraft::tools
