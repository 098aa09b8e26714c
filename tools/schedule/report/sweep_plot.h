/// sweep_plot draws the plot of a sweep: bubble against microbatches, one line per schedule,
/// devices and chunks.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace stagecraft::tools {

struct PlotLine {
  std::string name;
  std::vector<std::pair<int, double>> points;  ///< microbatches, bubble as a fraction
};

/// Returns a self-contained SVG picture with a logarithmic axis of microbatches. Curves differ in
/// color, mark and dashes; those that coincide take turns along their line, and their marks stand
/// side by side. Requires: at least one point.
[[nodiscard]] std::string plot_svg(const std::vector<PlotLine>& lines);

}  // namespace stagecraft::tools
