/// The colours of stages among the 256 of terminals.
///
/// The hues of palette.h where they suffice. Where there are more stages, they share a ramp that
/// goes once around the cube of colours, strong and pale ones in turn, so that neighbours differ
/// and the stages of one device lie far apart. Red is left to violations. Pure.
#pragma once

namespace stagecraft {

/// Colours of the ramp; of more stages, neighbours share one.
inline constexpr int kTerminalRamp = 34;

/// Returns the number of the colour, 16 to 231, for one of so many stages.
[[nodiscard]] int terminal_colour(int stage, int stages);

}  // namespace stagecraft
