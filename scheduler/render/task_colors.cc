#include "stagecraft/scheduler/render/task_colors.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace stagecraft {
namespace {

constexpr std::array<std::pair<CellKind, std::string_view>, 5> kKinds{
    {{CellKind::Forward, "F forward"},
     {CellKind::Backward, "B backward"},
     {CellKind::BackwardInput, "I input gradient"},
     {CellKind::BackwardWeight, "W weight gradient"},
     {CellKind::Update, "U update"}}};

/// The number of samples in a legend if there are too many colors to name each.
constexpr std::size_t kSamples = 32;

std::vector<int> chunks_of(const Schedule& schedule) {
  std::vector<int> chunks;
  std::set<int> seen;
  for (const Schedule::Row& row : schedule.rows()) {
    std::set<int> of_row;
    for (const Cell& cell : row) {
      for (const Task& task : cell.tasks()) {
        if (task.stage.value >= 0 && task.stage.value < kMaxStages &&
            !seen.contains(task.stage.value)) {
          of_row.insert(task.stage.value);
        }
      }
    }
    for (int chunk = 0; const int stage : of_row) {
      chunks.resize(std::max(chunks.size(), static_cast<std::size_t>(stage) + 1));
      chunks[static_cast<std::size_t>(stage)] = chunk++;
      seen.insert(stage);
    }
  }
  return chunks;
}

/// By kind, in the order of kKinds.
using ColorsOfKinds = std::map<CellKind, std::string>;
/// By position: the number of a stage, chunk or microbatch.
using DrawnColors = std::map<int, ColorsOfKinds>;

/// Returns evenly chosen samples.
std::vector<std::string> sampled(const std::vector<std::string>& colors) {
  const std::size_t samples = std::min(kSamples, colors.size());
  std::vector<std::string> chosen;
  for (std::size_t i = 0; i < samples; ++i) {
    chosen.push_back(colors[samples == 1 ? 0 : i * (colors.size() - 1) / (samples - 1)]);
  }
  return chosen;
}

/// Returns one row of samples; the text names the first and the last.
LegendEntry samples_of(std::string_view what, const DrawnColors& drawn) {
  std::vector<std::string> firsts;
  for (const auto& [position, colors] : drawn) {
    firsts.push_back(colors.begin()->second);
  }
  return {fmt::format("{}{} {} to {}",
                      what,
                      what.ends_with("ch") ? "es" : "s",
                      drawn.begin()->first,
                      drawn.rbegin()->first),
          sampled(firsts)};
}

/// Returns an entry for each kind, with the shades of its chunks.
std::vector<LegendEntry> legend_of_kinds(const DrawnColors& drawn) {
  std::vector<LegendEntry> legend;
  for (const auto& [kind, text] : kKinds) {
    std::vector<std::string> colors;
    for (const auto& [chunk, of_chunk] : drawn) {
      const auto found = of_chunk.find(kind);
      if (found != of_chunk.end() && std::ranges::find(colors, found->second) == colors.end()) {
        colors.push_back(found->second);
      }
    }
    if (!colors.empty()) {
      legend.push_back({std::string(text), sampled(colors)});
    }
  }
  if (drawn.size() > 1) {
    legend.push_back({fmt::format("shades: chunk {} strong, to chunk {} pale",
                                  drawn.begin()->first,
                                  drawn.rbegin()->first),
                      {}});
  }
  return legend;
}

std::vector<LegendEntry> legend_of(ColorBy by, const DrawnColors& drawn) {
  if (by == ColorBy::Kind) {
    return legend_of_kinds(drawn);
  }
  std::vector<LegendEntry> legend;
  if (drawn.size() > static_cast<std::size_t>(kStageColors)) {
    legend.push_back(samples_of(name(by), drawn));
  } else {
    for (const auto& [position, colors] : drawn) {
      legend.push_back({fmt::format("{} {}", name(by), position), {colors.begin()->second}});
    }
  }
  // Show the shades of the position that has most of them.
  const auto most = std::ranges::max_element(
      drawn, [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  if (most == drawn.end() || most->second.size() < 2) {
    return legend;
  }
  legend.push_back({fmt::format("shades, of {} {}:", name(by), most->first), {}});
  for (const auto& [kind, text] : kKinds) {
    if (const auto found = most->second.find(kind); found != most->second.end()) {
      legend.push_back({std::string(text), {found->second}});
    }
  }
  return legend;
}

}  // namespace

std::string_view name(ColorBy by) {
  switch (by) {
    case ColorBy::Kind:
      return "kind";
    case ColorBy::Chunk:
      return "chunk";
    case ColorBy::Number:
      return "microbatch";
    default:
      return "stage";
  }
}

TaskColors::TaskColors(std::span<const Panel> panels, ColorBy by) : by_(by) {
  const auto for_each_task = [&](const auto& visit) {
    for (std::size_t p = 0; p < panels.size(); ++p) {
      for (const Schedule::Row& row : panels[p].schedule->rows()) {
        for (const Cell& cell : row) {
          for (const Task& task : cell.tasks()) {
            visit(p, task);
          }
        }
      }
    }
  };
  for (const Panel& panel : panels) {
    chunks_.push_back(chunks_of(*panel.schedule));
  }
  for_each_task(
      [&](std::size_t p, const Task& task) { count_ = std::max(count_, position(task, p) + 1); });
  DrawnColors drawn;
  for_each_task([&](std::size_t p, const Task& task) {
    if (panels[p].graph->is_surplus(task)) {
      return;
    }
    if (std::string& color = drawn[position(task, p)][task.kind]; color.empty()) {
      color = of(task, ColorScheme::Light, p);
    }
  });
  legend_ = legend_of(by, drawn);
}

TaskColors::TaskColors(const Schedule& schedule, const StageGraph& graph, ColorBy by)
    : TaskColors(std::array{Panel{.schedule = &schedule, .graph = &graph}}, by) {}

int TaskColors::chunk(StageId stage, std::size_t panel) const {
  const auto s = static_cast<std::size_t>(std::max(stage.value, 0));
  return s < chunks_[panel].size() ? chunks_[panel][s] : 0;
}

int TaskColors::position(const Task& task, std::size_t panel) const {
  switch (by_) {
    case ColorBy::Kind:
    case ColorBy::Chunk:
      return chunk(task.stage, panel);
    case ColorBy::Number:
      return std::clamp(task.microbatch.value, 0, kMaxMicrobatches - 1);
    default:
      return std::clamp(task.stage.value, 0, kMaxStages - 1);
  }
}

std::string TaskColors::of(const Task& task, ColorScheme scheme, std::size_t panel) const {
  if (by_ == ColorBy::Kind) {
    return kind_color(task.kind, scheme, position(task, panel), count_);
  }
  return task_color({.kind = task.kind, .stage = StageId(position(task, panel))}, scheme, count_);
}

}  // namespace stagecraft
