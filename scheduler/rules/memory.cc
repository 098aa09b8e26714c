/// V30: no row holds more bytes than it has.
#include <fmt/format.h>

#include "stagecraft/scheduler/memory_model.h"
#include "stagecraft/scheduler/rules/rules.h"

namespace stagecraft::rules {
namespace {

double of(const std::vector<double>& by_stage, StageId s) {
  return s.index() < by_stage.size() ? by_stage[s.index()] : 0;
}

/// The bytes of one row while its list runs.
class RowMemory {
 public:
  RowMemory(const Input& in, const MemoryModel& model) : in_(in), model_(model) {}

  void hold_fixed(StageId s) { held_ += of(model_.fixed, s); }
  /// Runs one entry: a group's forwards are kept before its backwards release.
  void run(const Entry& entry);

  [[nodiscard]] double peak() const { return peak_; }
  [[nodiscard]] const Entry* peak_entry() const { return peak_entry_; }

 private:
  [[nodiscard]] double released(const Task& task) const;

  const Input& in_;
  const MemoryModel& model_;
  double held_ = 0;
  double peak_ = 0;
  const Entry* peak_entry_ = nullptr;
};

double RowMemory::released(const Task& task) const {
  const double activation = of(model_.activations, task.stage);
  switch (task.kind) {
    case CellKind::Backward:
      return activation;
    case CellKind::BackwardInput:
      return activation * model_.input_release;
    case CellKind::BackwardWeight:
      return activation * (1 - model_.input_release);
    default:
      return 0;
  }
}

void RowMemory::run(const Entry& entry) {
  double transient = 0;
  double freed = 0;
  for (const Task& task : entry.cell->tasks()) {
    if (!in_.tasks.in_range(task)) {
      continue;
    }
    transient += of(model_.transient, task.stage);
    freed += released(task);
    if (task.kind == CellKind::Forward && in_.graph.has_backward(task.stage)) {
      held_ += of(model_.activations, task.stage);
    }
  }
  if (peak_entry_ == nullptr || held_ + transient > peak_) {
    peak_ = held_ + transient;
    peak_entry_ = &entry;
  }
  held_ -= freed;
}

}  // namespace

void check_memory(const Input& in, const MemoryModel& model, Violations& out) {
  std::vector<RowMemory> rows(static_cast<std::size_t>(in.tasks.rows()), RowMemory(in, model));
  for (StageId s; s.value < in.graph.size(); ++s.value) {
    if (const auto row = in.placement.row(s)) {
      rows[static_cast<std::size_t>(*row)].hold_fixed(s);
    }
  }
  for (const Entry& entry : in.tasks.entries()) {
    rows[static_cast<std::size_t>(entry.row)].run(entry);
  }
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (rows[r].peak_entry() != nullptr && rows[r].peak() > model.budget) {
      const Entry& entry = *rows[r].peak_entry();
      Violation v = at("V30", entry, entry.cell->tasks().front());
      v.missing = fmt::format("{:.0f} bytes", rows[r].peak() - model.budget);
      v.message = fmt::format(
          "row {} holds {:.0f} bytes at {} ({}), its budget is {:.0f}; keep fewer microbatches in "
          "flight, move a stage elsewhere or raise the budget",
          r,
          rows[r].peak(),
          to_string(*entry.cell),
          where(in, entry),
          model.budget);
      out.push_back(std::move(v));
    }
  }
}

}  // namespace stagecraft::rules
