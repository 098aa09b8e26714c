/// trace_words has the words of a trace file that its writer and its reader share.
#pragma once

#include <array>
#include <string_view>

#include "stagecraft/tools/trace/trace_step.h"

namespace stagecraft::tools {

inline constexpr std::string_view kTraceVersionKey = "stagecraft_trace";
inline constexpr int kTraceVersion = 1;
/// Key in the header: the schedule, as text.
inline constexpr std::string_view kScheduleKey = "schedule";
/// Key in the header: the file and the costs with which the run was predicted.
inline constexpr std::string_view kPlannedWithKey = "planned_with";

/// The threads of each process, by tid.
inline constexpr std::array<std::string_view, 3> kThreads{"compute", "send", "receive"};

[[nodiscard]] constexpr int thread_of(Op op) {
  return op == Op::Send ? 1 : op == Op::Recv ? 2 : 0;
}

/// Category is the category of an instruction other than Run; for a Run it is the kind of its task.
struct Category {
  Op op;
  std::string_view name;
  TogetherKind together = TogetherKind::Sum;
};
inline constexpr std::array kCategories{
    Category{Op::Send, "send"},
    Category{Op::Recv, "receive"},
    Category{Op::Start, "start of a sum"},
    Category{Op::Finish, "end of a sum"},
    Category{Op::Start, "start of a gather", TogetherKind::Gather},
    Category{Op::Finish, "end of a gather", TogetherKind::Gather},
    Category{Op::Start, "start of an exchange", TogetherKind::Exchange},
    Category{Op::Finish, "end of an exchange", TogetherKind::Exchange},
    Category{Op::Free, "free"},
    Category{Op::Accumulate, "accumulate"},
    Category{Op::Vote, "vote"},
    Category{Op::Update, "update"},
    Category{Op::Regroup, "regroup"},
    Category{Op::Release, "release"}};

[[nodiscard]] constexpr std::string_view category(const TraceEvent& event) {
  if (event.op == Op::Run) {
    switch (event.task.kind) {
      case CellKind::Forward:
        return "forward";
      case CellKind::BackwardInput:
        return "backward of the input";
      case CellKind::BackwardWeight:
        return "backward of the weights";
      default:
        return "backward";
    }
  }
  for (const Category& known : kCategories) {
    if (known.op == event.op && known.together == event.together) {
      return known.name;
    }
  }
  return "";
}

}  // namespace stagecraft::tools
