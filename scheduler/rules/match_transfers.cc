/// Finds an action by its name, and judges whether it is in time by its place among the tasks.
#include "stagecraft/scheduler/rules/match_transfers.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include <fmt/format.h>

namespace stagecraft::rules {
namespace {

class Matching {
 public:
  Matching(const RuleInput& in, Violations& out)
      : in_(in), actions_(in.options.communication), out_(out), used_(actions_.size(), false) {}
  std::vector<ListedTransfer> run();

 private:
  void collect_actions();
  [[nodiscard]] bool accept(const CommAction& action);
  void collect_transfers();
  [[nodiscard]] bool nameable(StageId producer,
                              StageId consumer,
                              const Entry& entry,
                              const Task& task);
  [[nodiscard]] int find(CommKind kind, StageId stage, Microbatch microbatch, int row);
  void check_pairs();
  void check_leftovers();

  [[nodiscard]] const CommAction& action(int number) const {
    return actions_[static_cast<std::size_t>(number)];
  }
  [[nodiscard]] std::string place(const CommAction& action) const { return place_of(in_, action); }
  Violation& report(const char* rule, const CommAction& action, std::string message) {
    return report_action(in_, rule, action, std::move(message), out_);
  }

  const RuleInput& in_;
  std::span<const CommAction> actions_;
  Violations& out_;
  std::vector<std::pair<std::uint64_t, int>>
      by_name_;  // sorted: kind, stage and microbatch; action
  std::vector<bool> used_;
  std::vector<ListedTransfer> transfers_;
  std::map<std::pair<StageId, StageId>, bool> nameable_;
};

std::uint64_t name_of(CommKind kind, StageId stage, Microbatch microbatch) {
  return (static_cast<std::uint64_t>(kind) << 56U) |
         (std::uint64_t{static_cast<std::uint32_t>(stage.value)} << 28U) |
         static_cast<std::uint32_t>(microbatch.value);
}

/// Returns the task that made a transfer's value, at the sender and at the receiver.
Task task_of(const RuleInput& in, const CommAction& action) {
  if (action.kind == CommKind::SendForward || action.kind == CommKind::RecvForward) {
    return {CellKind::Forward, action.stage, action.microbatch};
  }
  const bool split = in.tasks.has(CellKind::BackwardInput, action.stage, action.microbatch);
  return {split ? CellKind::BackwardInput : CellKind::Backward, action.stage, action.microbatch};
}

/// Returns whether the action's stage, microbatch and row exist, and the row runs the stage.
bool Matching::accept(const CommAction& action) {
  if (action.stage.value < 0 || action.stage.value >= in_.graph.size()) {
    report("V04",
           action,
           fmt::format("{} names stage {}, but stages go from 0 to {}; correct the stage or the "
                       "stage graph",
                       place(action),
                       action.stage.value,
                       in_.graph.size() - 1))
        .cause = "stages of actions";
    return false;
  }
  if (is_transfer(action.kind) &&
      !in_.tasks.in_range({CellKind::Forward, action.stage, action.microbatch})) {
    report("V05",
           action,
           fmt::format("{} names microbatch {}, but there are {}; correct it",
                       place(action),
                       action.microbatch.value,
                       in_.tasks.microbatches()))
        .cause = "microbatches of actions";
    return false;
  }
  const auto row = in_.placement.row(action.stage);
  if (row && *row != action.row) {
    report("V07",
           action,
           fmt::format("{} is on row {}, but stage {} runs on row {}; move it there",
                       place(action),
                       action.row,
                       action.stage.value,
                       *row));
    return false;
  }
  return true;
}

void Matching::collect_actions() {
  for (std::size_t i = 0; i < actions_.size(); ++i) {
    const CommAction& action = actions_[i];
    if (action.row < 0 || action.row >= in_.tasks.rows()) {
      out_.push_back({.rule = "V02",
                      .missing = to_string(action),
                      .message = fmt::format("{} is on row {}, but there are {} rows; move it",
                                             to_string(action),
                                             action.row,
                                             in_.tasks.rows()),
                      .cause = "rows of actions"});
    } else if (accept(action) && is_transfer(action.kind)) {
      by_name_.emplace_back(name_of(action.kind, action.stage, action.microbatch),
                            static_cast<int>(i));
    }
  }
  std::ranges::sort(by_name_);
  for (std::size_t i = 1; i < by_name_.size(); ++i) {
    if (by_name_[i].first == by_name_[i - 1].first) {
      const CommAction& again = action(by_name_[i].second);
      used_[static_cast<std::size_t>(by_name_[i].second)] = true;
      report("V08",
             again,
             fmt::format("{} appears again: a value crosses once, so remove one of the two",
                         place(again)));
    }
  }
}

/// Returns whether SEND_F, which names only its own stage, identifies the value that crosses
/// between the two.
bool Matching::nameable(StageId producer, StageId consumer, const Entry& entry, const Task& task) {
  const auto [known, first] = nameable_.try_emplace({producer, consumer}, true);
  if (!first) {
    return known->second;
  }
  const std::size_t consumers = in_.graph.succs(producer).size();
  const std::size_t producers = in_.graph.preds(consumer).size();
  known->second = consumers == 1 && producers == 1;
  if (!known->second) {
    Violation v = at("V31", entry, task);
    v.missing = fmt::format("transfers from stage {} to stage {}", producer.value, consumer.value);
    v.message = fmt::format(
        "stage {} feeds {} stages and stage {} reads {}: SEND and RECV name one stage, so they do "
        "not tell which one is meant; leave the communication out, or write text or JSON",
        producer.value,
        consumers,
        consumer.value,
        producers);
    out_.push_back(std::move(v));
  }
  return known->second;
}

int Matching::find(CommKind kind, StageId stage, Microbatch microbatch, int row) {
  const auto name = name_of(kind, stage, microbatch);
  const auto found =
      std::ranges::lower_bound(by_name_, name, {}, &std::pair<std::uint64_t, int>::first);
  if (found == by_name_.end() || found->first != name || action(found->second).row != row) {
    return ListedTransfer::kNone;
  }
  used_[static_cast<std::size_t>(found->second)] = true;
  return found->second;
}

void Matching::collect_transfers() {
  for (const Transfer& value : transfers_of(in_)) {
    const auto& [made, needed_by, from, to] = value;
    const bool forward = made.kind == CellKind::Forward;
    const StageId producer = forward ? made.stage : needed_by.stage;
    const StageId consumer = forward ? needed_by.stage : made.stage;
    if (!nameable(producer, consumer, in_.tasks.entry(to), needed_by)) {
      continue;
    }
    ListedTransfer t{.value = value};
    t.send = find(forward ? CommKind::SendForward : CommKind::SendBackward,
                  made.stage,
                  made.microbatch,
                  in_.tasks.entry(from).row);
    t.receive = find(forward ? CommKind::RecvForward : CommKind::RecvBackward,
                     needed_by.stage,
                     needed_by.microbatch,
                     in_.tasks.entry(to).row);
    transfers_.push_back(t);
  }
}

void Matching::check_pairs() {
  for (ListedTransfer& t : transfers_) {
    const auto& [made, needed_by, from_entry, to_entry] = t.value;
    const Entry& from = in_.tasks.entry(from_entry);
    const Entry& to = in_.tasks.entry(to_entry);
    const bool forward = made.kind == CellKind::Forward;
    t.in_time = t.send != ListedTransfer::kNone && t.receive != ListedTransfer::kNone;
    for (const bool sending : {true, false}) {
      if ((sending ? t.send : t.receive) != ListedTransfer::kNone) {
        continue;
      }
      Violation v = sending ? at("V31", from, made) : at("V31", to, needed_by);
      const CommKind kind = sending ? (forward ? CommKind::SendForward : CommKind::SendBackward)
                                    : (forward ? CommKind::RecvForward : CommKind::RecvBackward);
      v.missing = to_string(CommAction{kind, v.task->stage, v.task->microbatch});
      v.cause = fmt::format("{} of {} missing", to_string(kind), v.task->stage.value);
      v.message = fmt::format("{} (row {}) needs {} from row {}, but row {} lacks {}; add it {} {}",
                              to_string(needed_by),
                              to.row,
                              to_string(made),
                              from.row,
                              v.row,
                              v.missing,
                              sending ? "after" : "before",
                              to_string(*v.task));
      out_.push_back(std::move(v));
    }
    if (t.send != ListedTransfer::kNone && entry_before(in_, action(t.send)) < from_entry) {
      t.in_time = false;
      Violation& v =
          report("V31",
                 action(t.send),
                 fmt::format("{} sends the result of {}, which comes later; move it after {}",
                             place(action(t.send)),
                             to_string(made),
                             to_string(made)));
      v.task = made;
      v.cause += " early";
    }
    if (t.receive != ListedTransfer::kNone && entry_before(in_, action(t.receive)) >= to_entry) {
      t.in_time = false;
      Violation& v = report("V31",
                            action(t.receive),
                            fmt::format("{} comes after {}, which needs it; move it before {}",
                                        place(action(t.receive)),
                                        to_string(needed_by),
                                        to_string(needed_by)));
      v.task = needed_by;
      v.cause += " late";
    }
  }
}

/// Reports sends without a receive and receives without a send.
void Matching::check_leftovers() {
  for (const auto& [name, number] : by_name_) {
    const CommAction& action = this->action(number);
    if (used_[static_cast<std::size_t>(number)]) {
      continue;
    }
    const bool to_consumer =
        action.kind == CommKind::SendForward || action.kind == CommKind::RecvBackward;
    const auto peers = to_consumer ? in_.graph.succs(action.stage) : in_.graph.preds(action.stage);
    const bool several = std::ranges::any_of(peers, [&](StageId peer) {
      return (to_consumer ? in_.graph.preds(peer) : in_.graph.succs(peer)).size() > 1;
    });
    if (several || peers.size() > 1) {
      continue;  // nameable() has reported it
    }
    std::string why;
    if (peers.empty()) {
      why = fmt::format(
          "stage {} {} no other stage", action.stage.value, to_consumer ? "feeds" : "reads from");
    } else if (in_.placement.row(peers.front()) == action.row) {
      why = fmt::format(
          "stage {} is on row {} too, so the value stays there", peers.front().value, action.row);
    } else {
      why = fmt::format("no such value of microbatch {} passes between stage {} and stage {}",
                        action.microbatch.value,
                        action.stage.value,
                        peers.front().value);
    }
    report("V31", action, fmt::format("{} has no counterpart: {}; remove it", place(action), why))
        .task = task_of(in_, action);
  }
}

std::vector<ListedTransfer> Matching::run() {
  collect_actions();
  collect_transfers();
  check_pairs();
  check_leftovers();
  return std::move(transfers_);
}

}  // namespace

int entry_before(const RuleInput& in, const CommAction& action) {
  const int begin = in.tasks.row_begin(action.row);
  const int before = std::min(begin + action.position, in.tasks.row_end(action.row)) - 1;
  return before < begin ? TaskGraph::kMissing : before;
}

std::string place_of(const RuleInput& in, const CommAction& action) {
  const int before = entry_before(in, action);
  return before == TaskGraph::kMissing
             ? fmt::format("{} (row {}, before its first task)", to_string(action), action.row)
             : fmt::format("{} (row {}, after {})",
                           to_string(action),
                           action.row,
                           to_string(*in.tasks.entry(before).cell));
}

Violation& report_action(const RuleInput& in,
                         const char* rule,
                         const CommAction& action,
                         std::string message,
                         Violations& out) {
  Violation v;
  v.rule = rule;
  v.row = action.row;
  const int begin = in.tasks.row_begin(action.row);
  const int length = in.tasks.row_end(action.row) - begin;
  if (length > 0) {
    const bool sends =
        action.kind == CommKind::SendForward || action.kind == CommKind::SendBackward;
    const int near = std::clamp(action.position - (sends ? 1 : 0), 0, length - 1);
    v.column = in.tasks.entry(begin + near).column;
    v.cells = {{v.row, v.column}};
  }
  v.missing = to_string(action);
  v.cause = fmt::format("{} of {}", to_string(action.kind), action.stage.value);
  v.message = std::move(message);
  out.push_back(std::move(v));
  return out.back();
}

std::vector<ListedTransfer> match_transfers(const RuleInput& in, Violations& out) {
  return Matching(in, out).run();
}

}  // namespace stagecraft::rules
