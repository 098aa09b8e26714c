#include "stagecraft/scheduler/render/html/html_data.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/scheduler/model/hash.h"
#include "stagecraft/scheduler/model/surplus.h"
#include "stagecraft/scheduler/render/html/html_limits.h"
#include "stagecraft/scheduler/render/html/json_text.h"
#include "stagecraft/scheduler/render/palette.h"
#include "stagecraft/scheduler/render/task_colors.h"

namespace stagecraft::drawing {
namespace {

/// A longer cycle is described, not drawn.
constexpr std::size_t kMaxSteps = 1'000;

std::string row_cells(const Schedule::Row& row) {
  std::string out;
  std::size_t idle = 0;
  const auto flush_idle = [&] {
    if (idle > 0) {
      out += fmt::format("{} ", std::exchange(idle, 0));
    }
  };
  for (const Cell& cell : row) {
    if (cell.idle()) {
      ++idle;
      continue;
    }
    flush_idle();
    out += to_string(cell) + ' ';
  }
  flush_idle();
  return json_text(out.empty() ? out : out.substr(0, out.size() - 1));
}

/// Returns the names that say more than the number.
std::string stage_names(const StageGraph& graph) {
  std::string out;
  for (int s = 0; s < graph.size(); ++s) {
    const std::string& name = graph.name(StageId(s));
    if (!name.empty() && name != fmt::format("stage {}", s)) {
      out += fmt::format("{}\"{}\":{}", out.empty() ? "" : ",", s, json_text(name));
    }
  }
  return '{' + out + '}';
}

std::string edges(const StageGraph& graph) {
  return json_list(graph.edges(), [&](const StageGraph::Edge& edge) {
    const bool gradient = graph.sends_gradient(StageId(edge.second), StageId(edge.first));
    return fmt::format("[{},{},{}]", edge.first, edge.second, gradient ? 1 : 0);
  });
}

/// Returns the stages whose forwards keep activations.
std::string keeping_stages(const StageGraph& graph) {
  std::vector<int> stages;
  for (int s = 0; s < graph.size(); ++s) {
    if (graph.has_backward(StageId(s))) {
      stages.push_back(s);
    }
  }
  return json_list(stages, [](int s) { return fmt::to_string(s); });
}

/// Returns, by stage, the letters of the backwards that do nothing.
std::string surplus_kinds(const StageGraph& graph) {
  std::string out;
  for (int s = 0; s < graph.size(); ++s) {
    std::string letters;
    for (const CellKind kind :
         {CellKind::Backward, CellKind::BackwardInput, CellKind::BackwardWeight}) {
      if (graph.is_surplus({kind, StageId(s), Microbatch(0)})) {
        letters += letter(kind);
      }
    }
    if (!letters.empty()) {
      out += fmt::format("{}\"{}\":\"{}\"", out.empty() ? "" : ",", s, letters);
    }
  }
  return '{' + out + '}';
}

/// Returns an empty text if every task does something.
std::string surplus_text(const Schedule& schedule, const StageGraph& graph) {
  const std::vector<Surplus> surplus = find_surplus(schedule, graph);
  return json_text(surplus.empty() ? "" : to_string(surplus, graph));
}

/// Returns colors by place and kind. If places share colors, returns each color once.
std::string colors_by(ColorBy by, int count, ColorScheme scheme) {
  constexpr std::array kKinds{CellKind::Forward,
                              CellKind::Backward,
                              CellKind::BackwardInput,
                              CellKind::BackwardWeight,
                              CellKind::Update};
  std::vector<std::string> colors;
  const int places = std::min(count, kRampColors);
  for (int place = 0; place < places; ++place) {
    for (const CellKind kind : kKinds) {
      colors.push_back(by == ColorBy::Kind
                           ? kind_color(kind, scheme, place, places)
                           : task_color({.kind = kind, .stage = StageId(place)}, scheme, places));
    }
  }
  return json_list(colors, json_text);
}

std::string colors(const Schedule& schedule, const StageGraph& graph) {
  std::string light;
  std::string dark;
  std::string counts;
  for (const ColorBy by : kColorBys) {
    const int count = TaskColors(schedule, graph, by).count();
    const auto add = [&](std::string& list, const std::string& value) {
      list += fmt::format("{}\"{}\":{}", list.empty() ? "" : ",", name(by), value);
    };
    add(light, colors_by(by, count, ColorScheme::Light));
    add(dark, colors_by(by, count, ColorScheme::Dark));
    add(counts, fmt::to_string(count));
  }
  return fmt::format(R"({{"light":{{{}}},"dark":{{{}}},"counts":{{{}}}}})", light, dark, counts);
}

/// Returns, by stage, its number among its device's stages.
std::string chunks(const Schedule& schedule, const StageGraph& graph) {
  const TaskColors colors(schedule, graph);
  std::vector<int> chunks;
  for (int s = 0; s < std::min(schedule.stages(), kMaxStages); ++s) {
    chunks.push_back(colors.chunk(StageId(s)));
  }
  return json_list(chunks, [](int chunk) { return fmt::to_string(chunk); });
}

std::string row_times(const RowTimeline& row) {
  std::string waits;
  bool transfers = false;
  for (const EntryTime& entry : row.entries) {
    waits += (entry.waited_for ? to_string(*entry.waited_for) : ".") + ' ';
    transfers = transfers || entry.in_transfer > 0;
  }
  const auto field = [&](double EntryTime::*member) {
    return json_list(row.entries,
                     [&](const EntryTime& entry) { return json_number(entry.*member); });
  };
  const bool bytes = row.peak_bytes > 0;
  return fmt::format(
      R"({{"starts":{},"ends":{},"waits":{},"transfers":{},"bytes":{},"bytesAfter":{},)"
      R"("idle":{},"bubbles":[{},{},{},{}],"peak":{}}})",
      field(&EntryTime::start),
      field(&EntryTime::end),
      json_text(waits.substr(0, waits.empty() ? 0 : waits.size() - 1)),
      transfers ? field(&EntryTime::in_transfer) : "null",
      bytes ? field(&EntryTime::bytes) : "null",
      bytes ? field(&EntryTime::bytes_after) : "null",
      json_number(row.idle),
      json_number(row.bubbles.warm_up),
      json_number(row.bubbles.dependency),
      json_number(row.bubbles.transfer),
      json_number(row.bubbles.drain),
      row.peak_in_flight);
}

std::string times(const Timeline* timeline) {
  if (timeline == nullptr) {
    return "null";
  }
  return fmt::format(R"({{"makespan":{},"rows":{}}})",
                     json_number(timeline->makespan),
                     json_list(timeline->rows, row_times));
}

template <class Item>
std::span<const Item> first_of(const std::vector<Item>& items, std::size_t most) {
  return std::span(items).first(std::min(items.size(), most));
}

/// `marks`: the number of cells that may still be marked.
std::string violation(const Violation& v, std::size_t& marks) {
  const auto task_name = [](const Task& task) { return json_text(to_string(task)); };
  const auto place = [](const std::pair<int, int>& cell) {
    return fmt::format("[{},{}]", cell.first, cell.second);
  };
  const auto cells = first_of(v.cells, marks);
  marks -= cells.size();
  return fmt::format(
      R"({{"rule":{},"row":{},"column":{},"task":{},"message":{},"cycle":{},"cells":{},"unmarked":{},"repair":{}}})",
      json_text(v.rule),
      v.row,
      v.column,
      v.task ? task_name(*v.task) : "null",
      json_text(v.message),
      json_list(first_of(v.cycle, kMaxSteps), task_name),
      json_list(cells, place),
      v.cells.size() - cells.size(),
      v.repair ? fmt::format("[{},{},{}]", v.repair->row, v.repair->first, v.repair->second)
               : "null");
}

}  // namespace

std::string html_data(const Schedule& schedule,
                      const StageGraph& graph,
                      const Timeline* timeline,
                      const std::vector<Violation>& violations,
                      std::string_view title) {
  const auto listed = std::span(violations).first(std::min(violations.size(), kMaxHtmlViolations));
  std::string out = fmt::format(
      R"({{"title":{},"hash":"{:016x}","form":"{}","stages":{},"microbatches":{},"share":{},)",
      json_text(title),
      schedule_hash(schedule),
      schedule.form() == Schedule::Form::Array ? "array" : "list",
      schedule.stages(),
      schedule.microbatches(),
      graph.microbatches_per_replica(schedule.microbatches()));
  out += fmt::format("\"columns\":{},\"names\":{},\"edges\":{},\"keeps\":{},\n",
                     schedule.columns(),
                     stage_names(graph),
                     edges(graph),
                     keeping_stages(graph));
  out += fmt::format(
      "\"surplus\":{},\"surplusText\":{},\n", surplus_kinds(graph), surplus_text(schedule, graph));
  out += "\"colors\":" + colors(schedule, graph) + ",\"chunks\":" + chunks(schedule, graph) + ",\n";
  out += "\"rows\":" + json_list(schedule.rows(), row_cells) + ",\n";
  out += fmt::format("\"hasDriverRow\":{},\n", schedule.headers().has_driver_row);
  out += "\"times\":" + times(timeline) + ",\n";
  std::size_t marks = kMaxHtmlMarks;
  out += "\"violations\":" +
         json_list(listed, [&](const Violation& v) { return violation(v, marks); });
  return out + fmt::format(",\n\"unlisted\":{}}}", violations.size() - listed.size());
}

}  // namespace stagecraft::drawing
