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
using TasksOfKinds = std::map<CellKind, Task>;

/// Returns one row of evenly chosen samples; the text names the first and the last.
LegendEntry sampled(std::string_view what, const std::map<int, TasksOfKinds>& drawn) {
  LegendEntry entry{fmt::format("{}{} {} to {}",
                                what,
                                what.ends_with("ch") ? "es" : "s",
                                drawn.begin()->first,
                                drawn.rbegin()->first),
                    {}};
  std::vector<Task> firsts;
  for (const auto& [position, tasks] : drawn) {
    firsts.push_back(tasks.begin()->second);
  }
  const std::size_t samples = std::min(kSamples, firsts.size());
  for (std::size_t i = 0; i < samples; ++i) {
    entry.examples.push_back(firsts[i * (firsts.size() - 1) / (samples - 1)]);
  }
  return entry;
}

/// `drawn`: a task of each position and kind.
std::vector<LegendEntry> legend_of(ColorBy by, const std::map<int, TasksOfKinds>& drawn) {
  std::vector<LegendEntry> legend;
  if (by != ColorBy::Kind && drawn.size() > static_cast<std::size_t>(kStageColors)) {
    legend.push_back(sampled(name(by), drawn));
  } else if (by != ColorBy::Kind) {
    for (const auto& [position, tasks] : drawn) {
      legend.push_back({fmt::format("{} {}", name(by), position), {tasks.begin()->second}});
    }
  }
  // Show the shades of the position that has most of them.
  const auto most = std::ranges::max_element(
      drawn, [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
  if (most == drawn.end() || (by != ColorBy::Kind && most->second.size() < 2)) {
    return legend;
  }
  if (by != ColorBy::Kind) {
    legend.push_back({fmt::format("shades, of {} {}:", name(by), most->first), {}});
  }
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

TaskColors::TaskColors(const Schedule& schedule, const StageGraph& graph, ColorBy by)
    : by_(by), chunks_(chunks_of(schedule)) {
  std::map<int, TasksOfKinds> drawn;
  for (const Schedule::Row& row : schedule.rows()) {
    for (const Cell& cell : row) {
      for (const Task& task : cell.tasks()) {
        count_ = std::max(count_, position(task) + 1);
        if (!graph.is_surplus(task)) {
          drawn[position(task)].try_emplace(task.kind, task);
        }
      }
    }
  }
  legend_ = legend_of(by, drawn);
}

int TaskColors::chunk(StageId stage) const {
  const auto s = static_cast<std::size_t>(std::max(stage.value, 0));
  return s < chunks_.size() ? chunks_[s] : 0;
}

int TaskColors::position(const Task& task) const {
  switch (by_) {
    case ColorBy::Kind:
      return 0;
    case ColorBy::Chunk:
      return chunk(task.stage);
    case ColorBy::Number:
      return std::clamp(task.microbatch.value, 0, kMaxMicrobatches - 1);
    default:
      return std::clamp(task.stage.value, 0, kMaxStages - 1);
  }
}

std::string TaskColors::of(const Task& task, ColorScheme scheme) const {
  if (by_ == ColorBy::Kind) {
    return kind_color(task.kind, scheme);
  }
  return task_color({.kind = task.kind, .stage = StageId(position(task))}, scheme, count_);
}

}  // namespace stagecraft
