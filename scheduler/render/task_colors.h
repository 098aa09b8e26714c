/// TaskColors assigns the colors of a drawing and the legend that explains them.
///
/// All drawings use it, so that a legend's swatches match the drawn colors. A swatch is the color
/// of a task that does something (a task that does nothing is drawn as an empty box). Schedules of
/// one picture share the colors. A value; any thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stagecraft/scheduler/model/cell.h"
#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"
#include "stagecraft/scheduler/render/palette.h"
#include "stagecraft/scheduler/render/panel.h"

namespace stagecraft {

/// ColorBy selects the property that hues show. Kind: forwards, backwards and their halves, with
/// the chunk as shade; for the others, shades show the kind. Chunk: the number of the stage among
/// its device's stages. Number: that of the microbatch.
enum class ColorBy : std::uint8_t { Stage, Kind, Chunk, Number };

inline constexpr std::array kColorBys{
    ColorBy::Stage, ColorBy::Kind, ColorBy::Chunk, ColorBy::Number};

/// Returns "stage", "kind", "chunk" or "microbatch".
[[nodiscard]] std::string_view name(ColorBy by);

/// LegendEntry is one explanation: text, and the colors that it explains, "#rrggbb" in the light
/// scheme; none for text alone.
struct LegendEntry {
  std::string text;
  std::vector<std::string> colors;
};

class TaskColors {
 public:
  /// Colors the schedules of one picture.
  explicit TaskColors(std::span<const Panel> panels, ColorBy by = ColorBy::Stage);
  TaskColors(const Schedule& schedule, const StageGraph& graph, ColorBy by = ColorBy::Stage);

  /// Returns "#rrggbb" for a task of the panel of that number.
  [[nodiscard]] std::string of(const Task& task,
                               ColorScheme scheme = ColorScheme::Light,
                               std::size_t panel = 0) const;
  /// Returns the number of the stage among its device's stages, from 0, in the row that lists it
  /// first; 0 if no row does.
  [[nodiscard]] int chunk(StageId stage, std::size_t panel = 0) const;
  /// Returns how many stages, chunks or microbatches share the colors; for kinds, the chunks.
  [[nodiscard]] int count() const { return count_; }
  /// Returns the meaning of the colors, then of their shades; for many colors, a selection of
  /// samples.
  [[nodiscard]] const std::vector<LegendEntry>& legend() const { return legend_; }

 private:
  [[nodiscard]] int position(const Task& task, std::size_t panel) const;

  ColorBy by_;
  std::vector<std::vector<int>> chunks_;  ///< by panel, then by stage
  int count_ = 1;
  std::vector<LegendEntry> legend_;
};

}  // namespace stagecraft
