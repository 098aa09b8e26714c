#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <iterator>
#include <system_error>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/output_place.h"
#include "stagecraft/base/whole_file.h"
#include "stagecraft/tools/trace/trace_file.h"
#include "stagecraft/tools/trace/trace_words.h"

namespace stagecraft::tools {
namespace {

constexpr std::string_view kEnd = "\n]}\n";

/// The format counts in microseconds; three decimals keep every nanosecond.
std::string microseconds(std::int64_t ns) {
  return fmt::format("{}{}.{:03}", ns < 0 ? "-" : "", std::abs(ns) / 1000, std::abs(ns) % 1000);
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
    case Op::Update:
      return fmt::format("update {}", event.task.stage.value);
    case Op::Vote:
    case Op::Collective:
    case Op::Free:
    case Op::Alloc:
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
    text += fmt::format(
        R"(,"peer":{},"edge":{},"bytes":{})", event.peer.value, event.edge.value, event.time.bytes);
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

}  // namespace

void TraceWriter::check_place(const std::string& path) {
  const OutputPlace place = output_place(path);
  if (place.kind == OutputPlace::Kind::Absent) {
    const WholeFile tried(path);  // a file can be made there
  } else if (place.kind == OutputPlace::Kind::File) {
    if (!std::ofstream(path, std::ios::binary | std::ios::app)) {
      unwritable(path, std::generic_category().message(errno));
    }
  } else if (!place.is_stream()) {
    unwritable(path, fmt::format("it is {}", to_string(place.kind)));
  }
}

TraceWriter::TraceWriter(const std::string& path, const TraceHeader& header)
    : path_(path),
      is_stream_(output_place(path).is_stream()),
      // A descriptor may be of a file that others write to as well.
      out_(path, is_stream_ ? std::ios::binary | std::ios::app : std::ios::binary),
      held_(header.ranks.size()),
      in_flight_(header.ranks.size()) {
  if (!out_) {
    unwritable(path, std::generic_category().message(errno));
  }
  write_header(header);
}

TraceWriter::~TraceWriter() {
  finish();
}

void TraceWriter::write_header(const TraceHeader& header) {
  text_ = fmt::format(
      R"({{"displayTimeUnit":"ms","otherData":{{"{}":{},"threads_per_worker":{},"processors":{}}},"traceEvents":[)",
      kTraceVersionKey,
      kTraceVersion,
      header.threads_per_worker,
      header.processors);
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
  out_ << text_;
  note_end();
}

void TraceWriter::note_end() {
  if (!is_stream_) {
    end_ = out_.tellp();
  }
}

void TraceWriter::write(const TraceStep& step) {
  text_.clear();
  flows_.clear();
  for (const auto& events : step.ranks) {
    for (const TraceEvent& event : events) {
      if (event.op == Op::Send) {
        flows_[{event.edge, event.task.microbatch}] = ++last_flow_;
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
  if (end_ != std::ofstream::pos_type(-1)) {
    out_.seekp(end_);
  }
  out_ << text_;
  note_end();
  if (end_ != std::ofstream::pos_type(-1)) {
    out_ << kEnd << std::flush;  // keeps TF-2
  }
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
  write_counters(rank, event);
}

/// Bound to the slice that is open at its time, so inside the receive even where the tensor came
/// before or at its very end.
void TraceWriter::write_flow(int rank, const TraceEvent& event) {
  const bool send = event.op == Op::Send;
  const std::int64_t inside =
      std::max(event.time.start, std::min(event.time.arrived, event.time.end - 1));
  text_ += fmt::format(
      ",\n"
      R"({{"ph":"{}",{}"name":"tensor","cat":"transfer","id":{},"ts":{},"pid":{},"tid":{}}})",
      send ? "s" : "f",
      send ? "" : R"("bp":"e",)",
      flows_[{event.edge, event.task.microbatch}],
      microseconds(send ? event.time.start : inside),
      rank,
      thread_of(event.op));
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
  if (out_.is_open()) {
    if (end_ != std::ofstream::pos_type(-1)) {
      out_.seekp(end_);
    }
    out_ << kEnd;
    out_.flush();
  }
}

void TraceWriter::close() {
  finish();
  const bool good = out_.good();
  out_.close();
  if (!good) {
    throw Error(Errc::UsageFile,
                fmt::format("the trace could not be written to '{}' to its end: is the disk full? "
                            "Does nobody read it any more? The run itself went well",
                            path_));
  }
}

}  // namespace stagecraft::tools
