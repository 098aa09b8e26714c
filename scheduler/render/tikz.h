/// The grid as a TikZ picture, to be put into a paper's source: boxes, names, colours, axis and
/// legend as render_svg() draws them, lengths in cm.
///
/// A snippet without a document around it; its first lines say which package it needs. Text is in
/// the paper's own sans-serif font. A red frame marks a violation, red arrows a cycle;
/// comments say what it is. Pure.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/scheduler/render/svg.h"

namespace stagecraft {

/// In pixels of PictureOptions: 12 cm, the text of an article.
inline constexpr double kTikzWidth = 12 / 2.54 * 96;

/// As render_svg(); without a width it is kTikzWidth wide. Errors: as render_svg().
[[nodiscard]] std::string render_tikz(const Schedule& schedule,
                                      const StageGraph& graph,
                                      const Timeline* timeline,
                                      const std::vector<Violation>& violations = {},
                                      const PictureOptions& options = {});

}  // namespace stagecraft
