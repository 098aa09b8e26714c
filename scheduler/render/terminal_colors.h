/// terminal_color picks the colors of stages among the 256 of terminals.
///
/// It uses the hues of palette.h if there are enough. Otherwise stages share a ramp that goes once
/// around the color cube, with strong and pale colors in turn, so that neighbors differ and the
/// stages of one device lie far apart. Red is reserved for violations. Pure.
#pragma once

namespace stagecraft {

/// The number of colors of the ramp. With more stages, neighbors share one.
inline constexpr int kTerminalRamp = 34;

/// Returns the number of the color, 16 to 231, for one of `stages` stages.
[[nodiscard]] int terminal_color(int stage, int stages);

}  // namespace stagecraft
