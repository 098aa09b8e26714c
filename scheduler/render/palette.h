/// The colours of the drawings: hue says the stage, lightness and strength the kind of task.
///
///     stage   0 blue  1 orange  2 green  3 violet  4 yellow  5 cyan ...  neighbours far apart
///     kind    W pale < F < I < B strong, U grey
///
/// Where there are more stages than such hues, they share a ramp: hue goes once around in even
/// steps, and neighbours differ a little in lightness too, less than kinds do.
/// Chosen in OKLCH (Ottosson, "A perceptual color space for image processing", 2020), where equal
/// lightness looks equally light, so that no stage stands out. Red is left to violations. Used by
/// TaskColours, and for what else has stages. Pure.
#pragma once

#include <string>

#include "stagecraft/scheduler/cell.h"

namespace stagecraft {

enum class ColourScheme { Light, Dark };

/// Hues that are easily told apart.
inline constexpr int kStageColours = 12;

/// Colours of a ramp; of more stages, neighbours share one.
inline constexpr int kRampColours = 256;

/// Returns "#rrggbb", for one of so many `stages`.
[[nodiscard]] std::string task_colour(const Task& task,
                                      ColourScheme scheme = ColourScheme::Light,
                                      int stages = kStageColours);

/// The same where hue says the kind.
[[nodiscard]] std::string kind_colour(CellKind kind, ColourScheme scheme = ColourScheme::Light);

}  // namespace stagecraft
