/// convert_svg converts an SVG picture to PDF or PNG with a program of this machine.
#pragma once

#include <string>
#include <string_view>

namespace stagecraft::tools {

enum class PictureFormat { Pdf, Png };

/// Returns the result of the first of rsvg-convert, inkscape and cairosvg on PATH. A PNG has two
/// pixels for one of the picture, so that it prints well.
/// Errors: UsageFile if there is no program, with what to install, and if it fails, with its
///         output. Thread: any; waits for the program.
[[nodiscard]] std::string convert_svg(std::string_view svg, PictureFormat format);

}  // namespace stagecraft::tools
