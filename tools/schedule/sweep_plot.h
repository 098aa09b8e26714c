/// The plot of a sweep: bubble against microbatches, one line per schedule, devices and chunks.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace stagecraft::tools {

struct PlotLine {
  std::string name;
  std::vector<std::pair<int, double>> points;  ///< microbatches, bubble as a fraction
};

/// Returns an SVG picture that needs nothing beside itself. Microbatches are drawn by their
/// logarithm. Of curves that coincide each is seen beside the next. Requires: at least one point.
[[nodiscard]] std::string plot_svg(const std::vector<PlotLine>& lines);

}  // namespace stagecraft::tools
