/// trace_file defines the trace of a run's steps, in the format that chrome://tracing and
/// ui.perfetto.dev open.
///
///     process  a rank                       complete events  every instruction, named for its task
///     thread   compute, send or receive     flow events      from each send to its receive
///                                           counters         bytes held, activations in flight
///
/// `stagecraft train --trace` writes it, `stagecraft trace` reads it. It is written in
/// place, and links are followed; a pipe or a device gets it as a stream.
/// TF-1: each step is written when it ends, and none is kept: a run may have any length.
/// TF-2: after every step the file is complete JSON, for any end of the run. When the disk is full,
///       the file stays complete and lacks the steps from then on. (A pipe is complete at its end.)
/// TF-3: reading returns the written times to the nanosecond.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <istream>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "stagecraft/tools/trace/planned_with.h"
#include "stagecraft/tools/trace/trace_step.h"

namespace stagecraft::tools {

/// TraceHeader holds the facts of the run that a reader needs beside its steps.
struct TraceHeader {
  std::vector<std::string> ranks;  ///< the stages of each, "0" or "0,3"
  int threads_per_worker = 1;
  int processors = 1;                       ///< number on the host
  std::string schedule;                     ///< its text form; empty: not known, in an old trace
  std::optional<PlannedWith> planned_with;  ///< none: it was not predicted
};

class TraceWriter {
 public:
  /// Tests whether a trace can be written there later, and changes nothing: does not open a pipe.
  /// Errors: UsageFile.
  static void check_place(const std::string& path);

  /// Begins the file. Errors: UsageFile for a file that cannot be written.
  TraceWriter(const std::string& path, const TraceHeader& header);
  ~TraceWriter();
  TraceWriter(const TraceWriter&) = delete;
  TraceWriter& operator=(const TraceWriter&) = delete;

  /// Writes a step. A full disk does not end the run: close() reports it.
  void write(const TraceStep& step);
  /// Ends the file. Errors: UsageFile, with the system's reason, if something could not be written.
  void close();

 private:
  void write_header(const TraceHeader& header);
  void write_event(int rank, const TraceEvent& event, std::int64_t step);
  void write_flow(int rank, const TraceEvent& event);
  void write_together(int rank, const TraceEvent& event);
  void write_counters(int rank, const TraceEvent& event);
  void append();
  void restore_end(off_t end);
  void finish();

  const std::string path_;
  const bool is_stream_;
  int file_;          ///< -1: closed
  int error_ = 0;     ///< errno of the first failure; nothing is written after it
  std::string text_;  ///< not written yet: of one step; on a stream, the first step with the header
  /// The end of the last event. Each step rewrites the file's own end after it; a stream has one
  /// end.
  off_t end_ = 0;
  std::map<std::pair<EdgeId, Microbatch>, std::int64_t> flows_;  ///< of the step being written
  /// Starts of sums, gathers and exchanges, by rank, group, kind and round.
  std::map<std::tuple<int, int, TogetherKind, int>, std::int64_t> started_;
  std::int64_t last_flow_ = 0;                  ///< also of what ranks do together
  std::int64_t begin_ns_ = -1;                  ///< of the first step; the trace starts at 0
  std::vector<std::int64_t> held_, in_flight_;  ///< last written values, by rank
};

/// Calls `step` with the header and with every step of a trace, in order, and returns the header.
/// Errors: UsageFile, naming `name` and the fault: cut off, no JSON, no trace of ours, a bad event.
TraceHeader read_trace(std::istream& in,
                       std::string_view name,
                       const std::function<void(const TraceHeader&, const TraceStep&)>& step);

}  // namespace stagecraft::tools
