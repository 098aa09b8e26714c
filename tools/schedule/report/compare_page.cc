#include "stagecraft/tools/schedule/report/compare_page.h"

#include <algorithm>

#include <fmt/format.h>

#include "stagecraft/scheduler/render/escape.h"
#include "stagecraft/tools/schedule/report/figure_columns.h"

namespace stagecraft::tools {
namespace {

constexpr const char* kHead = R"(<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="color-scheme" content="light dark">
)";

constexpr const char* kStyle = R"(<style>
body { font: 15px/1.4 system-ui, sans-serif; margin: 24px; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 4px 14px 4px 0; text-align: right; vertical-align: bottom; }
th:first-child, td:first-child { text-align: left; }
thead th { border-bottom: 1px solid; }
td { min-width: 6em; }
.bar { display: block; height: 3px; margin-left: auto; background: #4c8fdd; }
</style>
)";

double largest(const FigureColumn& column, const std::vector<Candidate>& candidates) {
  double most = 0;
  for (const Candidate& c : candidates) {
    most = std::max(most, c.figures ? column.value(*c.figures) : 0);
  }
  return most;
}

std::string table(const std::vector<Candidate>& candidates, bool bytes) {
  const std::span<const FigureColumn> all = figure_columns(bytes);
  std::string text = "<table>\n<thead><tr><th>schedule</th>";
  for (const FigureColumn& column : all) {
    text += fmt::format("<th>{}</th>", column.name);
  }
  text += "</tr></thead>\n<tbody>\n";
  for (const Candidate& c : candidates) {
    if (!c.figures) {
      continue;
    }
    text += fmt::format("<tr><td>{}</td>", drawing::escaped(c.name));
    for (const FigureColumn& column : all) {
      const double value = column.value(*c.figures);
      const double most = largest(column, candidates);
      text += fmt::format("<td>{}<span class=\"bar\" style=\"width:{:.1f}%\"></span></td>",
                          column.text(value),
                          most > 0 ? 100 * value / most : 0);
    }
    text += "</tr>\n";
  }
  return text + "</tbody>\n</table>\n";
}

std::string reasons(const std::vector<Candidate>& candidates) {
  std::string text;
  for (const Candidate& c : candidates) {
    if (!c.figures) {
      text +=
          fmt::format("<li>{}: {}</li>\n", drawing::escaped(c.name), drawing::escaped(c.reason));
    }
  }
  return text.empty() ? "" : "<h2>Not compared</h2>\n<ul>\n" + text + "</ul>\n";
}

}  // namespace

std::string compare_page(const std::string& title,
                         const std::vector<Candidate>& candidates,
                         bool bytes) {
  const std::string name = drawing::escaped(title);
  return fmt::format(
      "{}<title>{}</title>\n{}</head>\n<body>\n<h1>{}</h1>\n{}"
      "<p>Times are those of one device's share of the model: its forward takes 1, for any "
      "number of stages in the share. In flight counts stages × microbatches; memory counts the "
      "same in shares.</p>\n"
      "{}</body>\n</html>\n",
      kHead,
      name,
      kStyle,
      name,
      table(candidates, bytes),
      reasons(candidates));
}

}  // namespace stagecraft::tools
