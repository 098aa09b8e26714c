#include "stagecraft/tools/schedule/repair_steps.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/count_text.h"
#include "stagecraft/scheduler/rules/repair/mistyped.h"
#include "stagecraft/scheduler/rules/repair/unlock.h"
#include "stagecraft/scheduler/simulate/to_array.h"
#include "stagecraft/tools/schedule/report/verdict.h"

namespace stagecraft::tools {
namespace {

constexpr std::size_t kMostSteps = 100;

class Repair {
 public:
  explicit Repair(const ScheduleFile& file)
      : graph_(file.graph), repaired_{file.schedule, {}, violations_of(file)} {}
  Repaired run();

 private:
  bool step();
  bool mend_number();
  bool make(const std::optional<Exchange>& exchange);
  bool exchange_unlocking();
  bool leave_columns();
  void take_columns_back();
  void take(Schedule schedule, std::string what);
  void lay_out();

  const StageGraph& graph_;
  Repaired repaired_;
  std::optional<Schedule> array_;  ///< the given array, after its columns were dropped
  std::vector<Violation> left_in_array_;
  std::size_t steps_in_array_ = 0;
};

void Repair::take(Schedule schedule, std::string what) {
  repaired_.schedule = std::move(schedule);
  repaired_.left = validate(repaired_.schedule, graph_);
  repaired_.steps.push_back(std::move(what));
}

bool Repair::mend_number() {
  const auto mistyped = find_mistyped(repaired_.schedule, graph_);
  if (!mistyped) {
    return false;
  }
  take(apply(repaired_.schedule, *mistyped),
       fmt::format("wrote {}: {} {} and {} was missing",
                   to_string(*mistyped, repaired_.schedule),
                   to_string(mistyped->found),
                   mistyped->other ? "was there twice" : "was alone with its number",
                   to_string(mistyped->meant)));
  return true;
}

bool Repair::make(const std::optional<Exchange>& exchange) {
  if (!exchange) {
    return false;
  }
  take(apply(repaired_.schedule, *exchange),
       fmt::format("exchanged {}", to_string(*exchange, repaired_.schedule)));
  return true;
}

bool Repair::exchange_unlocking() {
  const auto deadlock = std::ranges::find(repaired_.left, "V29", &Violation::rule);
  return deadlock != repaired_.left.end() &&
         make(find_unlocking(repaired_.schedule, graph_, *deadlock));
}

/// Columns that are too early mean nothing: the order of each row counts, and lay_out() makes new
/// columns. This counts as no step.
bool Repair::leave_columns() {
  const bool late = std::ranges::any_of(
      repaired_.left, [](const Violation& v) { return v.rule >= "V20" && v.rule <= "V23"; });
  if (repaired_.schedule.form() != Schedule::Form::Array || !late) {
    return false;
  }
  array_ = std::exchange(repaired_.schedule, repaired_.schedule.to_list());
  left_in_array_ = std::exchange(repaired_.left, validate(repaired_.schedule, graph_));
  steps_in_array_ = repaired_.steps.size();
  return true;
}

/// If nothing could be done without columns, the violations are those that check shows.
void Repair::take_columns_back() {
  if (array_ && !repaired_.left.empty() && repaired_.steps.size() == steps_in_array_) {
    repaired_.schedule = std::move(*array_);
    repaired_.left = std::move(left_in_array_);
    array_.reset();
  }
}

std::size_t cells_moved(const Schedule& from, const Schedule& to) {
  std::size_t moved = 0;
  for (std::size_t r = 0; r < to.rows().size(); ++r) {
    const Schedule::Row& before = from.rows()[r];
    const Schedule::Row& after = to.rows()[r];
    for (std::size_t c = 0; c < after.size(); ++c) {
      moved += !after[c].idle() && (c >= before.size() || !(before[c] == after[c])) ? 1 : 0;
    }
  }
  return moved;
}

void Repair::lay_out() {
  if (!array_ || !repaired_.left.empty() || !fits_array(repaired_.schedule, graph_)) {
    return;
  }
  Schedule array = to_array(repaired_.schedule, graph_);
  const std::size_t moved = cells_moved(*array_, array);
  take(std::move(array),
       fmt::format("laid out the columns again: {} moved, and each row kept its order",
                   count_text(moved, "cell")));
}

bool Repair::step() {
  return mend_number() || make(proposed_exchange(repaired_.left)) || leave_columns() ||
         exchange_unlocking();
}

Repaired Repair::run() {
  while (!repaired_.left.empty() && repaired_.steps.size() < kMostSteps && step()) {
  }
  take_columns_back();
  lay_out();
  return std::move(repaired_);
}

}  // namespace

Repaired repair_steps(const ScheduleFile& file) {
  return Repair(file).run();
}

}  // namespace stagecraft::tools
