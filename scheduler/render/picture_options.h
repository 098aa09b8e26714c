/// PictureOptions says how render_svg() and render_tikz() draw schedules. A value.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "stagecraft/scheduler/render/task_colors.h"

namespace stagecraft {

/// The most entries of a picture. More are refused, because nobody can read such a picture.
inline constexpr std::size_t kMaxSvgEntries = 100'000;
/// The limits of the width in pixels. A narrower picture has no room for the legend; programs
/// cannot show a wider one.
inline constexpr double kNarrowestPicture = 240;
inline constexpr double kWidestPicture = 16'000;
/// The limit of the width, in pixels, if none is requested: a page or a screen shows it whole.
inline constexpr double kWidestUsual = 1600;

struct PictureOptions {
  std::string title;  ///< empty: no title
  ColorBy color_by = ColorBy::Stage;
  /// Width of the whole picture in CSS pixels, 96 to the inch; absent: as wide as the names need,
  /// up to kWidestUsual.
  /// Requires: kNarrowestPicture to kWidestPicture.
  std::optional<double> width;
  std::string time_name = "time";  ///< of the axis, if entries have times
  bool legend = true;              ///< and the notes below it
  bool idle = true;                ///< the idle share behind each row, if entries have times
  bool names = true;               ///< of tasks, in their boxes
};

}  // namespace stagecraft
