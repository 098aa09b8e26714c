#include "stagecraft/tools/schedule/report/figure_columns.h"

#include <array>

#include "stagecraft/base/byte_count.h"
#include "stagecraft/tools/common/number_text.h"

namespace stagecraft::tools {
namespace {

using F = ScheduleFigures;

constexpr std::array kColumns{
    FigureColumn{
        "stages", "stages", [](const F& f) { return static_cast<double>(f.stages); }, &number_text},
    FigureColumn{"makespan", "makespan", [](const F& f) { return f.makespan; }, &number_text},
    FigureColumn{"bubble", "bubble_fraction", [](const F& f) { return f.bubble; }, &percent_text},
    FigureColumn{"in flight",
                 "peak_in_flight",
                 [](const F& f) { return static_cast<double>(f.peak_in_flight); },
                 &number_text},
    FigureColumn{"memory",
                 "peak_microbatches",
                 [](const F& f) { return f.peak_microbatches; },
                 &number_text},
    FigureColumn{"messages",
                 "messages",
                 [](const F& f) { return static_cast<double>(f.messages); },
                 &number_text},
    FigureColumn{"peak bytes", "peak_bytes", [](const F& f) { return f.peak_bytes; }, &bytes_text}};

}  // namespace

std::span<const FigureColumn> figure_columns(bool bytes) {
  return std::span(kColumns).first(kColumns.size() - (bytes ? 0 : 1));
}

std::vector<std::string> figure_texts(const ScheduleFigures& figures, bool bytes) {
  std::vector<std::string> texts;
  for (const FigureColumn& column : figure_columns(bytes)) {
    texts.push_back(column.text(column.value(figures)));
  }
  return texts;
}

nlohmann::ordered_json figures_json(const ScheduleFigures& figures, bool bytes) {
  nlohmann::ordered_json object;
  for (const FigureColumn& column : figure_columns(bytes)) {
    object[column.key] = number_json(column.value(figures));
  }
  return object;
}

}  // namespace stagecraft::tools
