/// The colours of the drawings: hue says the stage, lightness and strength the kind of task.
///
///     stage   0 blue  1 orange  2 green  3 violet  4 yellow  5 cyan ...  neighbours far apart
///     kind    W pale < F < I < B strong, U grey
///
/// Chosen in OKLCH (Ottosson, "A perceptual color space for image processing", 2020), where equal
/// lightness looks equally light, so that no stage stands out. Red is left to violations. Used by
/// render_svg() and render_html(). Pure.
#pragma once

#include <string>

#include "stagecraft/scheduler/cell.h"

namespace stagecraft {

enum class ColourScheme { Light, Dark };

/// Stages beyond this many begin again with the first colour.
inline constexpr int kStageColours = 12;

/// Returns "#rrggbb".
[[nodiscard]] std::string task_colour(const Task& task, ColourScheme scheme = ColourScheme::Light);

}  // namespace stagecraft
