#include "stagecraft/scheduler/render/html/run_page.h"

#include <fmt/format.h>

#include "stagecraft/scheduler/model/cell.h"
#include "stagecraft/scheduler/render/html/html_assets.h"
#include "stagecraft/scheduler/render/html/json_text.h"
#include "stagecraft/scheduler/render/palette.h"

namespace stagecraft {
namespace {

std::string colors_json(ColorScheme scheme) {
  std::vector<std::string> colors;
  for (int s = 0; s < kStageColors; ++s) {
    colors.push_back(
        task_color({.kind = CellKind::Forward, .stage = StageId(s)}, scheme, kStageColors));
  }
  return drawing::json_list(colors, drawing::json_text);
}

}  // namespace

std::string render_run_page(std::string_view title, std::string_view state) {
  std::string safe;
  for (const char c : state) {
    safe += c == '<' ? std::string("\\u003c") : std::string(1, c);
  }
  return drawing::kRunPage.document(
      title,
      fmt::format(R"({{"colors":{{"light":{},"dark":{}}},"state":{}}})",
                  colors_json(ColorScheme::Light),
                  colors_json(ColorScheme::Dark),
                  safe));
}

}  // namespace stagecraft
