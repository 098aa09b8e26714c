/// V24 to V26 for sharding: checks the gathering and reducing of parameters that a file lists
/// against the tasks.
///
/// V24: gradients are not reduced before the stage's last backward has added to them. V25: no task
/// of a stage runs while its parameters are not gathered (judged for stages that the file gathers
/// at all). V26: gradients are reduced once. V08: parameters are not gathered twice without being
/// freed, nor freed while not gathered.
#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "stagecraft/scheduler/rules/parts/rule_input.h"

namespace stagecraft::rules {
namespace {

/// The state of one stage while its row runs.
struct StageState {
  bool sharded = false;  // the file gathers its parameters somewhere
  bool gathered = false;
  bool reported = false;  // reported once per time that the parameters are away
  const CommAction* reduce = nullptr;
  bool too_early = false;  // and has been reported
};

class Sharding {
 public:
  Sharding(const RuleInput& in, Violations& out)
      : in_(in), out_(out), stages_(static_cast<std::size_t>(in.graph.size())) {}
  void check();

 private:
  void run(const CommAction& action);
  void run(const Entry& entry, const Task& task);
  Violation& report(const char* rule, const CommAction& action, std::string message);

  const RuleInput& in_;
  Violations& out_;
  std::vector<StageState> stages_;
};

bool belongs(const RuleInput& in, const CommAction& action) {
  return !is_transfer(action.kind) && action.row >= 0 && action.row < in.tasks.rows() &&
         action.stage.value >= 0 && action.stage.value < in.graph.size() &&
         in.placement.row(action.stage).value_or(action.row) == action.row;
}

Violation& Sharding::report(const char* rule, const CommAction& action, std::string message) {
  Violation v;
  v.rule = rule;
  v.row = action.row;
  v.missing = to_string(action);
  v.cause = v.missing;
  v.message = std::move(message);
  out_.push_back(std::move(v));
  return out_.back();
}

void Sharding::run(const CommAction& action) {
  StageState& stage = stages_[action.stage.index()];
  const int s = action.stage.value;
  if (action.kind == CommKind::ReduceGrad) {
    if (stage.reduce != nullptr) {
      report(
          "V26",
          action,
          fmt::format(
              "{} appears twice on row {}: gradients are reduced once per step, so keep the last",
              to_string(action),
              action.row));
    }
    stage.reduce = &action;
    stage.too_early = false;
    return;
  }
  const bool gather = action.kind == CommKind::Unshard;
  if (stage.gathered == gather) {
    report("V08",
           action,
           fmt::format("{} on row {}: the parameters of stage {} are {} there; remove it",
                       to_string(action),
                       action.row,
                       s,
                       gather ? "already gathered" : "not gathered"));
  }
  stage.gathered = gather;
  stage.reported = false;
}

void Sharding::run(const Entry& entry, const Task& task) {
  StageState& stage = stages_[task.stage.index()];
  const int s = task.stage.value;
  if (stage.sharded && !stage.gathered && !stage.reported) {
    stage.reported = true;
    Violation v = at("V25", entry, task);
    v.cause = fmt::format("gathered {}", s);
    v.missing = fmt::format("{}UNSHARD", s);
    v.message = fmt::format(
        "{} (row {}) runs while the parameters of stage {} are not gathered; put {}UNSHARD before "
        "it, and {}RESHARD after the stage's last task",
        to_string(task),
        entry.row,
        s,
        s,
        s);
    out_.push_back(std::move(v));
  }
  const bool adds = task.kind == CellKind::Backward || task.kind == CellKind::BackwardWeight;
  if (adds && stage.reduce != nullptr && !stage.too_early) {
    stage.too_early = true;
    Violation& v = report("V24",
                          *stage.reduce,
                          fmt::format("{} comes before {} (row {}) has added its gradient; move it "
                                      "after the stage's last backward",
                                      to_string(*stage.reduce),
                                      to_string(task),
                                      entry.row));
    v.column = entry.column;
    v.cells = {{entry.row, entry.column}};
    v.task = task;
  }
}

void Sharding::check() {
  std::vector<std::vector<const CommAction*>> of_row(static_cast<std::size_t>(in_.tasks.rows()));
  for (const CommAction& action : in_.options.communication) {
    if (belongs(in_, action)) {
      of_row[static_cast<std::size_t>(action.row)].push_back(&action);
      stages_[action.stage.index()].sharded |= action.kind == CommKind::Unshard;
    }
  }
  for (int row = 0; row < in_.tasks.rows(); ++row) {
    const auto& actions = of_row[static_cast<std::size_t>(row)];
    auto next = actions.begin();
    for (int e = in_.tasks.row_begin(row); e < in_.tasks.row_end(row); ++e) {
      for (; next != actions.end() && (*next)->position <= e - in_.tasks.row_begin(row); ++next) {
        run(**next);
      }
      for (const Task& task : in_.tasks.entry(e).cell->tasks()) {
        if (in_.tasks.in_range(task) && in_.placement.row(task.stage) == row) {
          run(in_.tasks.entry(e), task);
        }
      }
    }
    for (; next != actions.end(); ++next) {
      run(**next);
    }
  }
}

}  // namespace

void check_sharding(const RuleInput& in, Violations& out) {
  if (!in.options.communication.empty()) {
    Sharding(in, out).check();
  }
}

}  // namespace stagecraft::rules
