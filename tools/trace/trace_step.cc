#include "stagecraft/tools/trace/trace_step.h"

#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <utility>

namespace stagecraft::tools {
namespace {

constexpr double kSecond = 1e-9;  // in nanoseconds

using TransferKey = std::pair<EdgeId, Microbatch>;

/// Origin is the row of the task that made a tensor, and the time at which that task ended.
struct Origin {
  int row = 0;
  double made = 0;
};
using Origins = std::map<TransferKey, Origin>;

TimeSpan span_of(const TraceEvent& event) {
  return {static_cast<double>(event.time.start) * kSecond,
          static_cast<double>(event.time.end) * kSecond};
}

MeasuredInput measured_input(const TraceEvent& receive, const Origins& origins) {
  MeasuredInput input;
  input.arrived = static_cast<double>(receive.time.arrived) * kSecond;
  input.bytes = static_cast<double>(receive.time.bytes);
  const auto origin = origins.find({receive.edge, receive.part});
  if (receive.peer != kDriver && origin != origins.end()) {
    input.from_row = origin->second.row;
    input.made = origin->second.made;
  }
  return input;
}

/// A send follows the task that made its tensor.
Origins origins_of(const TraceStep& step, const Layout& layout) {
  Origins origins;
  for (std::size_t rank = 0; rank < step.ranks.size(); ++rank) {
    std::map<Task, double> ended;
    for (const TraceEvent& event : step.ranks[rank]) {
      if (event.op == Op::Run || event.op == Op::Accumulate) {
        ended[event.task] = span_of(event).end;
      } else if (event.op == Op::Send) {
        origins[{event.edge, event.part}] = {layout.row_of(Rank(rank)), ended[event.task]};
      }
    }
  }
  return origins;
}

TimeSpan whole_span(const TraceStep& step) {
  std::optional<TimeSpan> whole;
  for (const auto& events : step.ranks) {
    if (!events.empty()) {
      const TimeSpan rank{span_of(events.front()).start, span_of(events.back()).end};
      whole = whole ? TimeSpan{std::min(whole->start, rank.start), std::max(whole->end, rank.end)}
                    : rank;
    }
  }
  return whole.value_or(TimeSpan{});
}

MeasuredRow measured_row(const std::vector<TraceEvent>& events, const Origins& origins) {
  MeasuredRow row;
  std::vector<MeasuredInput> inputs;
  for (const TraceEvent& event : events) {
    switch (event.op) {
      case Op::Run:
        if (!row.tasks.empty() && row.tasks.back().task == event.task) {  // a further part of it
          row.tasks.back().time.end = span_of(event).end;
          inputs.clear();
        } else {
          row.tasks.push_back({event.task, span_of(event), std::exchange(inputs, {})});
        }
        break;
      case Op::Accumulate:
        if (!row.tasks.empty() && row.tasks.back().task == event.task) {
          row.tasks.back().time.end = span_of(event).end;
        }
        break;
      case Op::Recv:
        inputs.push_back(measured_input(event, origins));
        break;
      case Op::Start:
      case Op::Finish:
        if (event.together == TogetherKind::Exchange) {
          break;  // between the parts of a task
        }
        [[fallthrough]];
      case Op::Vote:
        row.votes.push_back(span_of(event));
        break;
      case Op::Update:
        row.updates.push_back(span_of(event));
        break;
      case Op::Send:
      case Op::Free:
      case Op::Regroup:
      case Op::Release:
        break;
    }
  }
  return row;
}

}  // namespace

MeasuredStep measured_step(const TraceStep& step, const Layout& layout) {
  const Origins origins = origins_of(step, layout);
  MeasuredStep out{.rows = {}, .time = whole_span(step)};
  for (int row = 0; row < layout.rows(); ++row) {
    const std::span<const Rank> ranks = layout.ranks_of(row);
    out.rows.push_back(ranks.empty() ? MeasuredRow()
                                     : measured_row(step.ranks[ranks.front().index()], origins));
  }
  return out;
}

}  // namespace stagecraft::tools
