#include "stagecraft/scheduler/render/svg.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/scheduler/render/escape.h"
#include "stagecraft/scheduler/render/figure.h"
#include "stagecraft/scheduler/render/svg_elements.h"

namespace stagecraft {
namespace {

using drawing::Box;
using drawing::Figure;
using drawing::kLine;
using drawing::kMargin;
using drawing::svg_rectangle;
using drawing::svg_text;

constexpr std::size_t kMaxListed = 20;

constexpr std::string_view kStyle =
    "text{font:11px 'DejaVu Sans',Verdana,sans-serif;text-anchor:middle;fill:#14181d}"
    ".title{font-size:13.75px;text-anchor:start}.panel{text-anchor:start;font-weight:bold}"
    ".label{text-anchor:end;fill:#5c6773}.note{text-anchor:start}.axis{fill:#5c6773}"
    ".tick{stroke:#d5dae1}.mark{stroke:#5c6773}.swatch{stroke:#d5dae1;stroke-width:.5}"
    ".group{fill:none;stroke:#14181d;stroke-width:.75}"
    ".surplus{fill-opacity:0;stroke:#5c6773;stroke-dasharray:3 2}.surplus-text{fill:#5c6773}"
    ".bad{fill:none;stroke:#d3122a;stroke-width:2.5}.bad-text{fill:#d3122a}";

class Picture {
 public:
  Picture(std::span<const Panel> panels, const PictureOptions& options)
      : panels_(panels), figure_(panels, options) {}
  [[nodiscard]] std::string draw() const;

 private:
  [[nodiscard]] std::string draw_axis() const;
  [[nodiscard]] std::string draw_ticks(const drawing::Band& band) const;
  [[nodiscard]] std::string draw_rows(std::size_t panel) const;
  [[nodiscard]] std::string draw_box(const Box& box) const;
  [[nodiscard]] std::string draw_entry(std::span<const Box> boxes) const;
  [[nodiscard]] std::string draw_marks() const;
  [[nodiscard]] std::string draw_cycle(std::size_t panel) const;
  [[nodiscard]] std::string draw_legend() const;
  [[nodiscard]] std::vector<std::string> violation_lines() const;

  std::span<const Panel> panels_;
  Figure figure_;
};

std::string Picture::draw_axis() const {
  const double base = figure_.axis;
  std::string text =
      svg_text(figure_.left - kMargin, base - 8, R"(class="label")", figure_.axis_name);
  text += fmt::format(R"(<path d="M{:.1f} {:.1f}H{:.1f}" class="mark"/>)",
                      figure_.x(0),
                      base,
                      figure_.x(figure_.length));
  for (const drawing::Tick& tick : figure_.ticks) {
    const double at = figure_.x(tick.at) + (figure_.timed ? 0 : figure_.scale / 2);
    text += svg_text(at, base - 8, R"(class="axis")", tick.label);
    text += fmt::format(R"(<path d="M{0:.1f} {1:.1f}V{2:.1f}" class="mark"/>)", at, base - 4, base);
  }
  for (const drawing::Band& band : figure_.bands) {
    text += figure_.timed ? draw_ticks(band) : "";
  }
  return text + '\n';
}

std::string Picture::draw_ticks(const drawing::Band& band) const {
  std::string text;
  for (const drawing::Tick& tick : figure_.ticks) {
    text += fmt::format(R"(<path d="M{0:.1f} {1:.1f}V{2:.1f}" class="tick"/>)",
                        figure_.x(tick.at),
                        band.top - 2,
                        std::max(band.bottom, band.top - 2));
  }
  return text;
}

/// Draws a panel's name and rows, without their boxes.
std::string Picture::draw_rows(std::size_t panel) const {
  const Panel& drawn = panels_[panel];
  std::string text;
  if (!drawn.name.empty()) {
    const drawing::Band& band = figure_.bands[panel];
    text += svg_text(kMargin, band.heading, R"(class="panel")", band.name) + '\n';
  }
  for (std::size_t row = 0; row < drawn.schedule->rows().size(); ++row) {
    const double top = figure_.y(panel, row);
    const double middle = top + figure_.row_height / 2 + 4;
    text += svg_rectangle(figure_.x(0),
                          top + 2,
                          figure_.bands[panel].length,
                          figure_.row_height - 4,
                          fmt::format(R"(class="row" fill="{}")", drawing::kIdleColor));
    text += svg_text(
        figure_.left - kMargin, middle, R"(class="label")", row_name(*drawn.schedule, row));
    if (figure_.idle) {
      text += svg_text(figure_.x(figure_.length) + figure_.room_behind + 8,
                       middle,
                       R"(class="note")",
                       fmt::format("{:.1f}% idle", 100 * drawn.timeline->bubble_fraction(row)));
    }
    text += '\n';
  }
  return text;
}

std::string Picture::draw_box(const Box& box) const {
  const double wide = figure_.width_of(box);
  const double high = figure_.height_of(box);
  const double top = figure_.top_of(box);
  std::string text = svg_rectangle(
      figure_.left_of(box),
      top,
      wide,
      high,
      box.surplus ? R"(class="surplus")"
                  : fmt::format(R"(fill="{}")",
                                figure_.colors.of(box.task, ColorScheme::Light, box.panel)));
  if (const std::string name = figure_.name_in(box); !name.empty()) {
    text += svg_text(figure_.left_of(box) + wide / 2,
                     top + high / 2 + 0.36 * figure_.name_size,
                     fmt::format(R"(style="font-size:{}px"{})",
                                 figure_.name_size,
                                 box.surplus ? R"( class="surplus-text")" : ""),
                     name);
  }
  return text;
}

/// `boxes`: the members of one cell.
std::string Picture::draw_entry(std::span<const Box> boxes) const {
  const Box& first = boxes.front();
  std::string names = to_string(*first.cell);
  for (const Box& box : boxes) {
    names += box.surplus ? fmt::format(", {} does nothing", to_string(box.task)) : "";
  }
  const std::string& panel = panels_[first.panel].name;
  std::string text = fmt::format("<g class=\"entry\"><title>{} on row {}{}{}, {}</title>",
                                 names,
                                 first.row,
                                 panel.empty() ? "" : " of ",
                                 drawing::escaped(panel),
                                 figure_.timed ? fmt::format("{:g} to {:g}", first.begin, first.end)
                                               : fmt::format("column {}", first.column));
  for (const Box& box : boxes) {
    text += draw_box(box);
  }
  if (boxes.size() > 1) {
    text += svg_rectangle(figure_.left_of(first),
                          figure_.y(first.panel, first.row) + 2,
                          figure_.width_of(first),
                          figure_.row_height - 4,
                          R"(class="group")");
  }
  return text + "</g>\n";
}

/// Draws above all boxes, so that no neighbor hides a frame.
std::string Picture::draw_marks() const {
  std::string text;
  for (const Box& box : figure_.marked()) {
    text += svg_rectangle(figure_.left_of(box),
                          figure_.y(box.panel, box.row) + 2,
                          std::max(figure_.width_of(box), 1.0),
                          figure_.row_height - 4,
                          R"(class="bad")") +
            '\n';
  }
  for (std::size_t panel = 0; panel < panels_.size(); ++panel) {
    text += draw_cycle(panel);
  }
  return text;
}

std::string Picture::draw_cycle(std::size_t panel) const {
  std::string text;
  for (const drawing::Arrow& arrow : figure_.arrows(panel)) {
    text += fmt::format(
        "<path d=\"M{:.1f} {:.1f}Q{:.1f} {:.1f} {:.1f} {:.1f}\" class=\"bad\" "
        "marker-end=\"url(#head)\"/>\n",
        arrow.from.x,
        arrow.from.y,
        arrow.bow.x,
        arrow.bow.y,
        arrow.to.x,
        arrow.to.y);
  }
  return text;
}

std::string Picture::draw_legend() const {
  std::string text;
  for (const drawing::LegendItem& item : figure_.legend) {
    const double line = figure_.bottom() + kLine * static_cast<double>(item.line + 1) + 2;
    text += "<g class=\"legend\">";
    for (std::size_t i = 0; i < item.colors.size(); ++i) {
      text += svg_rectangle(item.x + drawing::kSwatch * static_cast<double>(i),
                            line - 9.5,
                            drawing::kSwatch,
                            drawing::kSwatch,
                            fmt::format(R"(class="swatch" fill="{}")", item.colors[i]));
    }
    text += svg_text(item.text_x(), line, R"(class="note")", item.text) + "</g>\n";
  }
  return text;
}

std::vector<std::string> Picture::violation_lines() const {
  std::vector<std::string> lines;
  for (const Panel& panel : panels_) {
    const std::size_t listed = std::min(panel.violations.size(), kMaxListed);
    for (const Violation& v : panel.violations.first(listed)) {
      for (std::string& line : drawing::wrapped(to_string(v), figure_.width - 2 * kMargin)) {
        lines.push_back(std::move(line));
      }
    }
    if (listed < panel.violations.size()) {
      lines.push_back(fmt::format("... and {} more", panel.violations.size() - listed));
    }
  }
  return lines;
}

/// Returns what the picture shows, for people who cannot see it.
std::string described(std::span<const Panel> panels) {
  std::string text;
  for (const Panel& panel : panels) {
    text += fmt::format("{}Schedule{}{} of {} rows, {} stages, {} microbatches",
                        text.empty() ? "" : "; ",
                        panel.name.empty() ? "" : " ",
                        panel.name,
                        panel.schedule->rows().size(),
                        panel.schedule->stages(),
                        panel.schedule->microbatches());
  }
  std::ranges::replace(text, '"', '\'');
  return drawing::escaped(text);
}

std::string Picture::draw() const {
  const std::vector<std::string> faults = violation_lines();
  const double lines =
      static_cast<double>(figure_.legend_lines() + figure_.notes.size() + faults.size());
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 "
      "0 {0:.0f} {1:.0f}\" role=\"img\" aria-label=\"{2}\">\n<style>{3}</style>\n<defs><marker "
      "id=\"head\" markerWidth=\"8\" "
      "markerHeight=\"8\" refX=\"6\" refY=\"4\" orient=\"auto\" "
      "markerUnits=\"userSpaceOnUse\"><path d=\"M0 0L8 4L0 8z\" "
      "fill=\"#d3122a\"/></marker></defs>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
      figure_.width,
      figure_.bottom() + kMargin + kLine * lines,
      described(panels_),
      kStyle);
  double line = 2;
  const auto write = [&](const std::vector<std::string>& words, double high, const char* style) {
    for (const std::string& each : words) {
      line += high;
      text += svg_text(kMargin, line, fmt::format(R"(class="{}")", style), each) + '\n';
    }
  };
  write(figure_.title, drawing::kTitleGrowth * kLine, "title");
  for (std::size_t panel = 0; panel < panels_.size(); ++panel) {
    text += draw_rows(panel);
  }
  text += draw_axis();
  const std::span<const Box> boxes(figure_.boxes);
  for (std::size_t i = 0; i < boxes.size(); i += boxes[i].cell->tasks().size()) {
    text += draw_entry(boxes.subspan(i, boxes[i].cell->tasks().size()));
  }
  text += draw_marks() + draw_legend();
  line = figure_.bottom() + kLine * static_cast<double>(figure_.legend_lines()) + 2;
  write(figure_.notes, kLine, "note surplus-text");
  write(faults, kLine, "note bad-text");
  return text + "</svg>\n";
}

}  // namespace

std::string render_svg(std::span<const Panel> panels, const PictureOptions& options) {
  return Picture(panels, options).draw();
}

std::optional<double> points_of_names(std::span<const Panel> panels,
                                      const PictureOptions& options) {
  constexpr double kPointsPerPixel = 72.0 / 96;
  const drawing::Figure figure(panels, options);
  const bool any = std::ranges::any_of(
      figure.boxes, [&](const drawing::Box& box) { return !figure.name_in(box).empty(); });
  return any ? std::optional(figure.name_size * kPointsPerPixel) : std::nullopt;
}

std::string render_svg(const Schedule& schedule,
                       const StageGraph& graph,
                       const Timeline* timeline,
                       const std::vector<Violation>& violations,
                       const PictureOptions& options) {
  return render_svg(std::array{Panel{&schedule, &graph, timeline, violations}}, options);
}

}  // namespace stagecraft
