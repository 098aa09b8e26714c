/// TaskColors assigns the colors of one schedule's drawing and the legend that explains them.
///
/// All drawings use it, so that a legend's swatches match the drawn colors. A swatch is a task of
/// the schedule that does something (a task that does nothing is drawn as an empty box). A value;
/// any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stagecraft/scheduler/model/cell.h"
#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"
#include "stagecraft/scheduler/render/palette.h"

namespace stagecraft {

/// ColorBy selects the property that colors show. Kind: forwards, backwards and their halves.
/// Chunk: the number of the stage among its device's stages. Number: that of the microbatch.
enum class ColorBy : std::uint8_t { Stage, Kind, Chunk, Number };

inline constexpr std::array kColorBys{
    ColorBy::Stage, ColorBy::Kind, ColorBy::Chunk, ColorBy::Number};

/// Returns "stage", "kind", "chunk" or "microbatch".
[[nodiscard]] std::string_view name(ColorBy by);

/// LegendEntry is one explanation: text, and a task of each color that it explains; no task for
/// text alone.
struct LegendEntry {
  std::string text;
  std::vector<Task> examples;
};

class TaskColors {
 public:
  TaskColors(const Schedule& schedule, const StageGraph& graph, ColorBy by = ColorBy::Stage);

  /// Returns "#rrggbb".
  [[nodiscard]] std::string of(const Task& task, ColorScheme scheme = ColorScheme::Light) const;
  /// Returns the number of the stage among its device's stages, from 0, in the row that lists it
  /// first; 0 if no row does.
  [[nodiscard]] int chunk(StageId stage) const;
  /// Returns how many stages, chunks or microbatches share the colors; 1 for kinds.
  [[nodiscard]] int count() const { return count_; }
  /// Returns the meaning of the colors, then of their shades; for many colors, a selection of
  /// samples.
  [[nodiscard]] const std::vector<LegendEntry>& legend() const { return legend_; }

 private:
  [[nodiscard]] int position(const Task& task) const;

  ColorBy by_;
  std::vector<int> chunks_;  ///< by stage
  int count_ = 1;
  std::vector<LegendEntry> legend_;
};

}  // namespace stagecraft
