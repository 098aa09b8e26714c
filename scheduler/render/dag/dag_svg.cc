#include "stagecraft/scheduler/render/dag/dag_svg.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/base/count_text.h"
#include "stagecraft/scheduler/render/dag/dag_figure.h"
#include "stagecraft/scheduler/render/dag/dag_words.h"
#include "stagecraft/scheduler/render/escape.h"
#include "stagecraft/scheduler/render/figure.h"
#include "stagecraft/scheduler/render/palette.h"
#include "stagecraft/scheduler/render/svg_elements.h"

namespace stagecraft {
namespace {

using drawing::DagFigure;
using drawing::kLine;
using drawing::kMargin;
using drawing::svg_rectangle;
using drawing::svg_text;

constexpr double kDetailSize = 9;
constexpr double kTurnSize = 7;
constexpr std::string_view kStyleOfDag =
    "text{font:11px 'DejaVu Sans',Verdana,sans-serif;text-anchor:middle;fill:#14181d}"
    ".title{font-size:13.75px;text-anchor:start}.note{text-anchor:start}"
    ".heading{text-anchor:start;font-weight:bold}.label{text-anchor:end;fill:#5c6773}"
    ".turn{font-size:7px;text-anchor:start;fill:#14181d;fill-opacity:.7}"
    ".cluster{fill:#fff;stroke:#8b95a3}.band{fill-opacity:.3}"
    ".node rect{stroke:#5c6773;stroke-width:.75}"
    ".surplus rect{fill-opacity:0;stroke-dasharray:3 2}"
    ".line{fill:none}.data{stroke:#36404c;stroke-width:1.1;marker-end:url(#data-head)}"
    ".order{stroke:#8b95a3;stroke-width:.7;stroke-dasharray:3 2.5;marker-end:url(#order-head)}"
    ".transfer{stroke:#9a5bd0;stroke-width:1.9;marker-end:url(#transfer-head)}"
    ".swatch{stroke:#d5dae1;stroke-width:.5}";

/// Returns the color of a stream for a node of a kind. Nodes that do not compute have one shade.
std::string stream_color(const TrainingDag& dag, int stream, DagKind kind) {
  constexpr std::array kShades{
      CellKind::Forward, CellKind::Backward, CellKind::BackwardInput, CellKind::BackwardWeight};
  const CellKind shade =
      computes(kind) ? kShades.at(static_cast<std::size_t>(kind)) : CellKind::Forward;
  return task_color({.kind = shade, .stage = StageId(stream)},
                    ColorScheme::Light,
                    static_cast<int>(dag.streams.size()));
}

std::string band_color(const TrainingDag& dag, int stream) {
  return stream_color(dag, stream, DagKind::Weight);
}

/// Returns the text, cut to a width. Texts of UTF-8 are cut between characters.
std::string fitted_name(std::string text, double width, double size) {
  if (drawing::text_width(text, size) <= width) {
    return text;
  }
  while (!text.empty() && drawing::text_width(text + "...", size) > width) {
    do {
      text.pop_back();
    } while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xC0U) == 0x80U);
  }
  return text + "...";
}

std::string arrow_head(std::string_view name, std::string_view color, double size) {
  return fmt::format(
      "<marker id=\"{0}\" markerWidth=\"{1}\" markerHeight=\"{1}\" refX=\"{1}\" refY=\"{2}\" "
      "orient=\"auto\" markerUnits=\"userSpaceOnUse\"><path d=\"M0 0L{1} {2}L0 {1}z\" "
      "fill=\"{3}\"/></marker>",
      name,
      size,
      size / 2,
      color);
}

class DagPicture {
 public:
  explicit DagPicture(const IssuedDag& issued)
      : dag_(issued.dag), figure_(issued), width_(std::max(figure_.width, kNarrowest)) {}

  [[nodiscard]] std::string draw() const {
    const std::string legend = draw_legend();
    std::string text = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
        "viewBox=\"0 0 {0:.0f} {1:.0f}\" role=\"img\" aria-label=\"Training DAG of {2} nodes\">\n"
        "<style>{3}</style>\n<defs>{4}{5}{6}</defs>\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
        width_,
        figure_.bottom + kMargin + kLine * (kKeyLines + legend_lines()) + 8,
        dag_.size(),
        kStyleOfDag,
        arrow_head("data-head", "#36404c", 6),
        arrow_head("order-head", "#8b95a3", 5),
        arrow_head("transfer-head", "#9a5bd0", 8));
    text += svg_text(kMargin,
                     21,
                     R"(class="title")",
                     fmt::format("{}, {}, {}",
                                 count_text(dag_.source.graph.size(), "stage"),
                                 count_text(dag_.microbatches, "microbatch"),
                                 count_text(dag_.size(), "node"))) +
            '\n';
    for (const DagFigure::Cluster& cluster : figure_.clusters) {
      text += draw_cluster(cluster);
    }
    for (const DagFigure::Line& line : figure_.lines) {
      text += draw_line(line);
    }
    for (int n = 0; n < dag_.size(); ++n) {
      text += draw_node(n);
    }
    return text + legend + "</svg>\n";
  }

 private:
  static constexpr double kNarrowest = 520;  // for the legend
  static constexpr double kKeyLines = 1;

  struct Key {
    int stream = 0;
    std::string text;
    double x = 0;
    int line = 0;
  };

  [[nodiscard]] const std::string& stream_name(int stream) const {
    return dag_.streams[static_cast<std::size_t>(stream)];
  }

  [[nodiscard]] std::string draw_cluster(const DagFigure::Cluster& cluster) const {
    std::string text = svg_rectangle(kMargin / 2,
                                     cluster.top,
                                     figure_.width - kMargin,
                                     cluster.bottom - cluster.top,
                                     R"(class="cluster" rx="6")");
    text += svg_text(kMargin + 2,
                     cluster.top + 16,
                     R"(class="heading")",
                     fitted_name("ranks " + place_text(dag_, cluster.place),
                                 figure_.width - 3 * kMargin,
                                 drawing::kTextSize * 1.15)) +
            '\n';
    for (const DagFigure::Lane& lane : cluster.lanes) {
      const double middle = lane.top + DagFigure::kLaneHeight - DagFigure::kNodeHeight / 2 - 6;
      text += fmt::format("<g class=\"lane\"><title>stream {}</title>",
                          drawing::escaped(stream_name(lane.stream)));
      text +=
          svg_rectangle(figure_.left,
                        lane.top + 1,
                        figure_.width - figure_.left - kMargin,
                        DagFigure::kLaneHeight - 2,
                        fmt::format(R"(class="band" fill="{}")", band_color(dag_, lane.stream)));
      text +=
          svg_text(figure_.left - 8,
                   middle + 4,
                   R"(class="label")",
                   fitted_name(stream_name(lane.stream), figure_.left - 26, drawing::kTextSize)) +
          "</g>\n";
    }
    return text;
  }

  [[nodiscard]] static std::string draw_line(const DagFigure::Line& line) {
    constexpr std::array<std::string_view, 3> kNames{"data", "order", "transfer"};
    return fmt::format("<path class=\"line {}\" data-from=\"{}\" data-to=\"{}\" d=\"{}\"/>\n",
                       kNames.at(static_cast<std::size_t>(line.kind)),
                       line.from,
                       line.to,
                       line.path);
  }

  [[nodiscard]] std::string draw_node(int n) const {
    const DagNode& node = dag_.node(n);
    const DagFigure::Spot& spot = figure_.spots[static_cast<std::size_t>(n)];
    const bool surplus = computes(node.kind) && dag_.is_surplus(node);
    std::string text = fmt::format(
        "<g class=\"node{}\" id=\"node-{}\"><title>{}{} on ranks {}, stream {}, number {} of its "
        "list</title>",
        surplus ? " surplus" : "",
        n,
        drawing::escaped(to_string(dag_, n)),
        surplus ? ", does nothing," : "",
        place_text(dag_, node.place),
        drawing::escaped(stream_name(node.stream)),
        spot.turn);
    text += svg_rectangle(
        spot.x,
        spot.y,
        DagFigure::kNodeWidth,
        DagFigure::kNodeHeight,
        fmt::format(R"(rx="4" fill="{}")", stream_color(dag_, node.stream, node.kind)));
    text +=
        svg_text(spot.x + 3, spot.y + kTurnSize + 1, R"(class="turn")", std::to_string(spot.turn));
    return text + label_of(n, spot) + "</g>\n";
  }

  [[nodiscard]] std::string label_of(int n, const DagFigure::Spot& spot) const {
    const drawing::NodeLabel label = drawing::node_label(dag_, n);
    const double middle = spot.x + DagFigure::kNodeWidth / 2;
    const double room = DagFigure::kNodeWidth - 4;
    const auto line = [&](const std::string& words, double y, double size) {
      while (size > drawing::kSmallestName && drawing::text_width(words, size) > room) {
        size -= 0.5;
      }
      return svg_text(middle,
                      spot.y + y,
                      fmt::format(R"(style="font-size:{:g}px")", size),
                      fitted_name(words, room, size));
    };
    return label.second.empty()
               ? line(label.first, 20, drawing::kTextSize)
               : line(label.first, 16, kDetailSize) + line(label.second, 26, kDetailSize);
  }

  [[nodiscard]] std::vector<Key> keys() const {
    std::vector<Key> keys;
    double x = kMargin;
    int line = 0;
    for (const int stream : figure_.streams) {
      std::string text =
          fitted_name("stream " + stream_name(stream), width_ / 2, drawing::kTextSize);
      const double wide = drawing::kSwatch + 5 + drawing::text_width(text) + 14;
      if (x > kMargin && x + wide > width_ - kMargin) {
        x = kMargin;
        ++line;
      }
      keys.push_back({stream, std::move(text), x, line});
      x += wide;
    }
    return keys;
  }

  [[nodiscard]] double legend_lines() const {
    const std::vector<Key> all = keys();
    return all.empty() ? 0 : all.back().line + 1;
  }

  [[nodiscard]] std::string draw_legend() const {
    std::string text;
    double y = figure_.bottom + kLine + 4;
    for (const Key& key : keys()) {
      const double line = y + kLine * key.line;
      text += "<g class=\"legend\">";
      text += svg_rectangle(key.x,
                            line - 9.5,
                            drawing::kSwatch,
                            drawing::kSwatch,
                            fmt::format(R"(class="swatch" fill="{}")",
                                        stream_color(dag_, key.stream, DagKind::Forward)));
      text += svg_text(key.x + drawing::kSwatch + 5, line, R"(class="note")", key.text) + "</g>\n";
    }
    y += kLine * legend_lines();
    double x = kMargin;
    constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kLines{
        {{"data", "data"}, {"order", "order"}, {"transfer", "transfer between ranks"}}};
    for (const auto& [name, meaning] : kLines) {
      text += fmt::format(R"(<path class="line {}" d="M{:.1f} {:.1f}h26"/>)", name, x, y - 4);
      text += svg_text(x + 32, y, R"(class="note")", meaning);
      x += 32 + drawing::text_width(meaning) + 14;
    }
    text += svg_text(x, y, R"(class="note")", "small number: place in the issue order");
    return text + '\n';
  }

  const TrainingDag& dag_;
  const DagFigure figure_;
  const double width_;
};

}  // namespace

std::string render_dag_svg(const IssuedDag& issued) {
  return DagPicture(issued).draw();
}

}  // namespace stagecraft
