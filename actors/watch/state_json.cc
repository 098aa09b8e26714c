#include "stagecraft/actors/watch/state_json.h"

#include <nlohmann/json.hpp>

#include "stagecraft/scheduler/measured/measured_waits.h"

namespace stagecraft {
namespace {

using StateObject = nlohmann::ordered_json;

constexpr int kStateVersion = 1;

const char* phase_name(WatchPhase phase) {
  switch (phase) {
    case WatchPhase::Running:
      return "running";
    case WatchPhase::Paused:
      return "paused";
    case WatchPhase::Ended:
      return "ended";
  }
  return "";
}

StateObject curve_json(const WatchedState& state) {
  StateObject steps = StateObject::array(), losses = steps, seconds = steps, rates = steps;
  for (const WatchPoint& point : state.curve) {
    steps.push_back(point.step);
    losses.push_back(point.loss);
    seconds.push_back(point.seconds);
    rates.push_back(point.per_second);
  }
  return {{"step", steps}, {"loss", losses}, {"seconds", seconds}, {"per_second", rates}};
}

StateObject rank_json(const WatchedState& state, std::size_t rank) {
  const WatchedRank& facts = state.run.ranks[rank];
  StateObject object{{"rank", rank}, {"stages", facts.stages}, {"place", facts.place}};
  if (facts.billed_bytes != 0) {
    object["billed_bytes"] = facts.billed_bytes;
  }
  if (rank < state.last.ranks.size()) {
    const RankTimes& times = state.last.ranks[rank];
    object.update({{"forward_seconds", times.forward},
                   {"backward_seconds", times.backward},
                   {"update_seconds", times.update},
                   {"waiting_seconds", times.waiting},
                   {"peak_activation_bytes", times.peak_bytes},
                   {"peak_bytes", times.memory.peak},
                   {"live_bytes", times.memory.live},
                   {"cached_bytes", times.memory.cached}});
  }
  return object;
}

/// Counts times from the start of the first task of any row.
StateObject row_json(const MeasuredRow& row, const TimeSpan& span, const std::vector<int>& ranks) {
  StateObject cells = StateObject::array(), waits = cells;
  for (const MeasuredTask& task : row.tasks) {
    cells.push_back({{"cell", to_string(task.task)},
                     {"start_seconds", task.time.start - span.start},
                     {"end_seconds", task.time.end - span.start}});
  }
  for (const MeasuredWait& wait : waits_of(row, span)) {
    waits.push_back({{"cause", to_string(wait.cause)},
                     {"start_seconds", wait.time.start - span.start},
                     {"end_seconds", wait.time.end - span.start}});
  }
  return {{"ranks", ranks}, {"cells", cells}, {"waits", waits}};
}

StateObject timeline_json(const WatchedState& state) {
  const auto& timeline = state.last.timeline;
  if (!timeline || timeline->rows.size() != state.run.ranks_of_rows.size()) {
    return nullptr;
  }
  const TimeSpan span = tasks_span(*timeline);
  StateObject rows = StateObject::array();
  for (std::size_t r = 0; r < timeline->rows.size(); ++r) {
    rows.push_back(row_json(timeline->rows[r], span, state.run.ranks_of_rows[r]));
  }
  return {{"step", state.last.step}, {"makespan_seconds", span.length()}, {"rows", rows}};
}

/// Returns a figure of a step; null if none was made.
StateObject of_step(double figure, const WatchedState& state) {
  return state.has_step ? StateObject(figure) : StateObject(nullptr);
}

StateObject events_json(const std::vector<WatchEvent>& events, const char* name) {
  StateObject list = StateObject::array();
  for (const WatchEvent& event : events) {
    list.push_back({{"step", event.step}, {name, event.text}});
  }
  return list;
}

}  // namespace

std::string state_json(const WatchedState& state, StateParts parts) {
  StateObject ranks = StateObject::array(), bytes = ranks;
  for (std::size_t r = 0; r < state.run.ranks.size(); ++r) {
    ranks.push_back(rank_json(state, r));
  }
  for (const RouteBytes& one : state.bytes) {
    bytes.push_back({{"route", to_string(one.route)}, {"bytes", one.bytes}});
  }
  const WatchedStep& last = state.last;
  StateObject object{{"stagecraft", "watch"},
                     {"version", kStateVersion},
                     {"phase", phase_name(state.phase)},
                     {"end", state.end},
                     {"model", state.run.model},
                     {"schedule", state.run.schedule},
                     {"step", last.step},
                     {"steps", state.run.steps},
                     {"loss", of_step(last.loss, state)},
                     {"seconds", of_step(last.seconds, state)},
                     {"counted", state.run.counted},
                     {"counted_total", state.counted},
                     {"per_second", of_step(last.per_second, state)},
                     {"bubble_fraction", of_step(last.bubble, state)},
                     {"learning_rate", of_step(last.learning_rate, state)},
                     {"gradient_norm", of_step(last.gradient_norm, state)},
                     {"running_seconds", state.running_seconds},
                     {"waits", state.waits},
                     {"restarts", state.healing.restarts},
                     {"repeated_steps", state.healing.repeated_steps},
                     {"healing_seconds", state.healing.seconds},
                     {"takes_checkpoints", state.run.takes_checkpoints},
                     {"ranks", ranks},
                     {"sent", bytes},
                     {"curve", curve_json(state)},
                     {"checkpoints", events_json(state.checkpoints, "file")},
                     {"messages", events_json(state.messages, "text")}};
  if (parts == StateParts::All) {
    object["timeline"] = timeline_json(state);
  }
  return object.dump(-1, ' ', false, StateObject::error_handler_t::replace);
}

}  // namespace stagecraft
