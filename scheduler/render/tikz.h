/// render_tikz draws schedules as a TikZ picture for a paper's source: boxes, names, colors, axis
/// and legend as in render_svg(), lengths in cm.
///
/// The result is a snippet without a document around it; its first lines name the package that it
/// needs. Text uses the paper's own sans-serif font. A red frame marks a violation, red arrows a
/// cycle; comments explain it. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"
#include "stagecraft/scheduler/render/panel.h"
#include "stagecraft/scheduler/render/picture_options.h"
#include "stagecraft/scheduler/rules/validate.h"
#include "stagecraft/scheduler/simulate/simulate.h"

namespace stagecraft {

/// The default width in pixels of PictureOptions: 12 cm, the text width of an article.
inline constexpr double kTikzWidth = 12 / 2.54 * 96;

/// Draws as render_svg() does; the default width is kTikzWidth. Errors: those of render_svg().
[[nodiscard]] std::string render_tikz(std::span<const Panel> panels,
                                      const PictureOptions& options = {});

/// Draws one schedule. Requires: `timeline`, if given, is the schedule's own.
[[nodiscard]] std::string render_tikz(const Schedule& schedule,
                                      const StageGraph& graph,
                                      const Timeline* timeline,
                                      const std::vector<Violation>& violations = {},
                                      const PictureOptions& options = {});

}  // namespace stagecraft
