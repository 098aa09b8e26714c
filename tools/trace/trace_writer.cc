#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <iterator>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/base/error.h"
#include "stagecraft/base/files/output_place.h"
#include "stagecraft/base/files/whole_file.h"
#include "stagecraft/base/files/write_all.h"
#include "stagecraft/scheduler/formats/json/costs_json.h"
#include "stagecraft/tools/trace/trace_file.h"
#include "stagecraft/tools/trace/trace_words.h"

namespace stagecraft::tools {
namespace {

constexpr std::string_view kEnd = "\n]}\n";

/// The format uses microseconds; three decimals keep every nanosecond.
std::string microseconds(std::int64_t ns) {
  return fmt::format("{}{}.{:03}", ns < 0 ? "-" : "", std::abs(ns) / 1000, std::abs(ns) % 1000);
}

/// Returns another member of the header.
std::string schedule_text(const std::string& schedule) {
  return schedule.empty()
             ? ""
             : fmt::format(R"(,"{}":{})", kScheduleKey, nlohmann::json(schedule).dump());
}

/// Returns another member of the header.
std::string plan_text(const PlannedWith& plan) {
  const nlohmann::json file(plan.file);
  std::string costs = to_json(plan.costs);
  std::erase(costs, '\n');
  return fmt::format(R"(,"{}":{{"file":{},"costs":{}}})",
                     kPlannedWithKey,
                     file.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
                     costs);
}

std::string_view word_of(TogetherKind kind) {
  return kind == TogetherKind::Gather     ? "gather"
         : kind == TogetherKind::Exchange ? "exchange"
                                          : "sum";
}

std::string name_of(const TraceEvent& event) {
  std::string task = to_string(event.task);
  const std::string peer = event.peer == kDriver ? "driver" : to_string(event.peer);
  switch (event.op) {
    case Op::Run:
      return task;
    case Op::Accumulate:
      return "accumulate " + task;
    case Op::Send:
      return fmt::format("{} to {}", task, peer);
    case Op::Recv:
      return fmt::format("for {} from {}", task, peer);
    case Op::Regroup:
      return "regroup for " + task;
    case Op::Update:
      return fmt::format("update {}", event.task.stage.value);
    case Op::Vote:
    case Op::Start:
    case Op::Finish:
    case Op::Free:
    case Op::Release:
      break;
  }
  return std::string(category(event));
}

std::string arguments_of(const TraceEvent& event, std::int64_t step) {
  std::string text = fmt::format("\"step\":{}", step);
  if (event.task.kind != CellKind::Idle) {
    text += fmt::format(R"(,"kind":"{}","stage":{},"microbatch":{})",
                        letter(event.task.kind),
                        event.task.stage.value,
                        event.task.microbatch.value);
  }
  if (event.op == Op::Send || event.op == Op::Recv) {
    text += fmt::format(R"(,"peer":{},"edge":{},"part":{},"bytes":{})",
                        event.peer.value,
                        event.edge.value,
                        event.part.value,
                        event.time.bytes);
  }
  if (event.op == Op::Recv) {
    text += fmt::format(",\"arrived\":{}", microseconds(event.time.arrived));
  }
  return text;
}

[[noreturn]] void unwritable(const std::string& path, const std::string& why) {
  throw Error(Errc::UsageFile,
              fmt::format("the trace '{}' cannot be written: {}; name another place", path, why));
}

/// Appends to a stream: the file of a descriptor may have other writers as well.
int open_trace(const std::string& path, bool is_stream) {
  const int file =
      open(path.c_str(), O_WRONLY | O_CLOEXEC | (is_stream ? O_APPEND : O_CREAT | O_TRUNC), 0666);
  if (file < 0) {
    unwritable(path, std::generic_category().message(errno));
  }
  return file;
}

}  // namespace

void TraceWriter::check_place(const std::string& path) {
  const OutputPlace place = output_place(path);
  if (place.kind == OutputPlace::Kind::Absent) {
    const WholeFile tried(path);  // fails if no file can be made there
  } else if (place.kind == OutputPlace::Kind::File) {
    const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (file < 0) {
      unwritable(path, std::generic_category().message(errno));
    }
    ::close(file);
  } else if (!place.is_stream()) {
    unwritable(path, fmt::format("it is {}", to_string(place.kind)));
  }
}

TraceWriter::TraceWriter(const std::string& path, const TraceHeader& header)
    : path_(path),
      is_stream_(output_place(path).is_stream()),
      file_(open_trace(path, is_stream_)),
      held_(header.ranks.size()),
      in_flight_(header.ranks.size()) {
  write_header(header);
}

TraceWriter::~TraceWriter() {
  finish();
}

void TraceWriter::write_header(const TraceHeader& header) {
  text_ = fmt::format(
      R"({{"displayTimeUnit":"ms","otherData":{{"{}":{},"threads_per_worker":{},"processors":{}{}{}}},"traceEvents":[)",
      kTraceVersionKey,
      kTraceVersion,
      header.threads_per_worker,
      header.processors,
      schedule_text(header.schedule),
      header.planned_with ? plan_text(*header.planned_with) : "");
  for (std::size_t rank = 0; rank < header.ranks.size(); ++rank) {
    text_ += fmt::format(
        "{}\n"
        R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":"rank {}, stages {}","stages":"{}"}}}})",
        rank == 0 ? "" : ",",
        rank,
        rank,
        header.ranks[rank],
        header.ranks[rank]);
    for (std::size_t thread = 0; thread < std::size(kThreads); ++thread) {
      text_ += fmt::format(
          ",\n"
          R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"{}"}}}})",
          rank,
          thread,
          kThreads[thread]);
    }
  }
  if (!is_stream_) {
    append();
  }
}

/// Writes text_ after the last event, all of it or nothing.
void TraceWriter::append() {
  if (error_ == 0 && is_stream_) {
    error_ = write_all(file_, text_);
  } else if (error_ == 0) {
    const off_t begin = end_;
    end_ += static_cast<off_t>(text_.size());
    text_ += kEnd;  // keeps TF-2
    error_ = lseek(file_, begin, SEEK_SET) < 0 ? errno : write_all(file_, text_);
    if (error_ != 0) {
      restore_end(begin);
    }
  }
  text_.clear();
}

/// Writes the file's end again. Its old space is free again, so this works on a full disk too.
void TraceWriter::restore_end(off_t end) {
  end_ = end;
  if (ftruncate(file_, end) == 0 && end > 0 && lseek(file_, end, SEEK_SET) == end) {
    (void)write_all(file_, kEnd);
  }
}

void TraceWriter::write(const TraceStep& step) {
  flows_.clear();
  for (const auto& events : step.ranks) {
    for (const TraceEvent& event : events) {
      if (event.op == Op::Send) {
        flows_[{event.edge, event.part}] = ++last_flow_;
      }
    }
  }
  if (begin_ns_ < 0) {
    for (const auto& events : step.ranks) {
      if (!events.empty() && (begin_ns_ < 0 || events.front().time.start < begin_ns_)) {
        begin_ns_ = events.front().time.start;
      }
    }
  }
  for (std::size_t rank = 0; rank < step.ranks.size(); ++rank) {
    for (TraceEvent event : step.ranks[rank]) {
      event.time.start -= begin_ns_;
      event.time.end -= begin_ns_;
      event.time.arrived -= event.op == Op::Recv ? begin_ns_ : 0;
      write_event(static_cast<int>(rank), event, step.step);
    }
  }
  append();
}

void TraceWriter::write_event(int rank, const TraceEvent& event, std::int64_t step) {
  text_ += fmt::format(
      ",\n"
      R"({{"ph":"X","name":"{}","cat":"{}","ts":{},"dur":{},"pid":{},"tid":{},"args":{{{}}}}})",
      name_of(event),
      category(event),
      microseconds(event.time.start),
      microseconds(event.time.end - event.time.start),
      rank,
      thread_of(event.op),
      arguments_of(event, step));
  if (event.op == Op::Send || (event.op == Op::Recv && event.peer != kDriver)) {
    write_flow(rank, event);
  }
  write_together(rank, event);
  write_counters(rank, event);
}

/// Writes the flow event. The format binds it to the slice that is open at its time, so the time
/// lies inside the receive, even if the tensor came before it or at its very end.
void TraceWriter::write_flow(int rank, const TraceEvent& event) {
  const bool send = event.op == Op::Send;
  const std::int64_t inside =
      std::max(event.time.start, std::min(event.time.arrived, event.time.end - 1));
  text_ += fmt::format(
      ",\n"
      R"({{"ph":"{}",{}"name":"tensor","cat":"transfer","id":{},"ts":{},"pid":{},"tid":{}}})",
      send ? "s" : "f",
      send ? "" : R"("bp":"e",)",
      flows_[{event.edge, event.part}],
      microseconds(send ? event.time.start : inside),
      rank,
      thread_of(event.op));
}

/// Writes a sum, gather or exchange as a span of its own, from its start to the end of the wait for
/// it: what the rank computes below it hides it.
void TraceWriter::write_together(int rank, const TraceEvent& event) {
  if (event.group < 0) {
    return;
  }
  if (event.op == Op::Start) {
    started_[{rank, event.group, event.together, event.round}] = event.time.start;
    return;
  }
  const auto started = started_.find({rank, event.group, event.together, event.round});
  if (event.op != Op::Finish || started == started_.end()) {
    return;
  }
  ++last_flow_;
  for (const auto& [phase, at] :
       {std::pair("b", started->second), std::pair("e", event.time.end)}) {
    text_ += fmt::format(
        ",\n"
        R"({{"ph":"{}","name":"{} of group {}","cat":"{}","id":{},"ts":{},"pid":{},"tid":0}})",
        phase,
        word_of(event.together),
        event.group,
        word_of(event.together),
        last_flow_,
        microseconds(at),
        rank);
  }
  started_.erase(started);
}

void TraceWriter::write_counters(int rank, const TraceEvent& event) {
  const auto tell = [&](std::int64_t& last, std::int64_t now, const char* name, const char* unit) {
    if (now != last) {
      last = now;
      text_ += fmt::format(
          ",\n"
          R"({{"ph":"C","name":"{}","ts":{},"pid":{},"args":{{"{}":{}}}}})",
          name,
          microseconds(event.time.end),
          rank,
          unit,
          now);
    }
  };
  const auto at = static_cast<std::size_t>(rank);
  tell(held_[at], event.time.held, "memory held", "bytes");
  tell(in_flight_[at], event.time.in_flight, "in flight", "activations");
}

void TraceWriter::finish() {
  if (file_ < 0) {
    return;
  }
  if (is_stream_) {
    text_ += kEnd;
    append();
  }
  if (::close(std::exchange(file_, -1)) != 0 && error_ == 0) {
    error_ = errno;
  }
}

void TraceWriter::close() {
  finish();
  if (error_ != 0) {
    throw Error(
        Errc::UsageFile,
        fmt::format("the trace '{}' could not be completed: {}; free space, or name another "
                    "place",
                    path_,
                    std::generic_category().message(error_)));
  }
}

}  // namespace stagecraft::tools
