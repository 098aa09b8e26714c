/// palette chooses the colors of drawings: hue shows the stage, lightness and chroma show the kind
/// of task.
///
///     stage   0 blue  1 orange  2 green  3 violet  4 yellow  5 cyan ...  neighbors far apart
///     kind    W pale < F < I < B strong, U gray
///
/// kind_color() turns this around for pictures in the manner of papers: hue shows the kind, and
/// lightness and chroma the chunk.
/// If there are more stages than these hues, they share a ramp: hue goes once around in even steps,
/// and neighbors also differ a little in lightness, less than kinds do.
/// The colors are chosen in OKLCH (Ottosson, "A perceptual color space for image processing",
/// 2020), where equal lightness looks equally light, so no stage stands out. Red is reserved for
/// violations. TaskColors and other drawings of stages use the palette. Pure.
#pragma once

#include <string>

#include "stagecraft/scheduler/model/cell.h"

namespace stagecraft {

enum class ColorScheme { Light, Dark };

/// The number of hues that are easily told apart.
inline constexpr int kStageColors = 12;

/// The number of colors of a ramp. With more stages, neighbors share one.
inline constexpr int kRampColors = 256;

/// Returns "#rrggbb" for a task of one of `stages` stages.
[[nodiscard]] std::string task_color(const Task& task,
                                     ColorScheme scheme = ColorScheme::Light,
                                     int stages = kStageColors);

/// Returns a color with the hue for the kind. The shade shows one of `chunks` chunks, from strong
/// to pale; updates have one gray.
[[nodiscard]] std::string kind_color(CellKind kind,
                                     ColorScheme scheme = ColorScheme::Light,
                                     int chunk = 0,
                                     int chunks = 1);

}  // namespace stagecraft
