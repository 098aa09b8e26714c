/// picture_outputs has the options of commands that draw schedules: the files of the pictures, and
/// how these look.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "stagecraft/scheduler/render/panel.h"
#include "stagecraft/scheduler/render/picture_options.h"
#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/common/files_apart.h"

namespace CLI {
class App;
}

namespace stagecraft::tools {

struct PictureOutputs {
  std::string svg;
  std::string tikz;
  std::string pdf;
  std::string png;
  std::string html;  ///< of commands that write pages, which add the option
  std::string title;
  std::string color_by = "stage";
  std::string width;
  bool no_legend = false;
  bool no_idle = false;
  bool no_labels = false;

  /// Returns whether a picture or a page is requested.
  [[nodiscard]] bool any() const;
  [[nodiscard]] bool any_picture() const;
  /// Returns the options and their files; empty names for those not given.
  [[nodiscard]] std::vector<NamedFile> files() const;
};

/// Adds --svg, --tikz, --pdf, --png and the options of their look. `outputs` must outlive the
/// parse. `usual_title`: the title without --title, for the help.
void add_picture_outputs(CLI::App& app, PictureOutputs& outputs, const std::string& usual_title);

/// Returns the look that the parsed options give.
/// Errors: UsageArgument for two outputs in one file, and for picture options without effect.
[[nodiscard]] PictureOptions picture_options(const CLI::App& app, const PictureOutputs& outputs);

/// Writes all requested pictures of the panels. Notes names that --width makes too small to read.
/// Errors: those of render_svg() and convert_svg(); UsageFile.
void write_pictures(std::span<const Panel> panels,
                    const PictureOptions& options,
                    const PictureOutputs& outputs,
                    Console& console);

}  // namespace stagecraft::tools
