/// TaskColours: what the colours of one schedule's drawing say, and the legend that explains them.
///
/// One place for all drawings, so that a legend's swatches are the colours drawn: a swatch is a
/// task of the schedule that does something (one that does nothing is drawn as an empty box). A
/// value; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "stagecraft/scheduler/cell.h"
#include "stagecraft/scheduler/render/palette.h"
#include "stagecraft/scheduler/schedule.h"
#include "stagecraft/scheduler/stage_graph.h"

namespace stagecraft {

/// Kind: forwards, backwards and their halves. Chunk: which of its device's stages, in their order.
/// Number: of the microbatch.
enum class ColourBy : std::uint8_t { Stage, Kind, Chunk, Number };

inline constexpr std::array kColourBys{
    ColourBy::Stage, ColourBy::Kind, ColourBy::Chunk, ColourBy::Number};

/// Returns "stage", "kind", "chunk" or "microbatch".
[[nodiscard]] std::string_view name(ColourBy by);

/// One explanation: words, and a task of each colour that they speak of; none for words alone.
struct LegendEntry {
  std::string text;
  std::vector<Task> examples;
};

class TaskColours {
 public:
  TaskColours(const Schedule& schedule, const StageGraph& graph, ColourBy by = ColourBy::Stage);

  /// Returns "#rrggbb".
  [[nodiscard]] std::string of(const Task& task, ColourScheme scheme = ColourScheme::Light) const;
  /// Which of its device's stages, from 0, by the row that lists it first; 0 where no row does.
  [[nodiscard]] int chunk(StageId stage) const;
  /// How many stages, chunks or microbatches share the colours; of kinds one.
  [[nodiscard]] int count() const { return count_; }
  /// What the colours say, then what their shades say; of many, a run of samples.
  [[nodiscard]] const std::vector<LegendEntry>& legend() const { return legend_; }

 private:
  [[nodiscard]] int position(const Task& task) const;

  ColourBy by_;
  std::vector<int> chunks_;  ///< by stage
  int count_ = 1;
  std::vector<LegendEntry> legend_;
};

}  // namespace stagecraft
