/// RunFolder is the folder of `train --run-dir` while its run is going on: it keeps other runs out,
/// and writes the record.
///
/// The command holds it from its options to its end; single-threaded.
/// FOL-1: one process at a time has a folder, and its lock ends with the process however that ends.
/// FOL-2: a folder holds one run. A run that trains something else, or by another strategy, is
///        refused before anything in the folder has changed.
/// FOL-3: a record that can no longer be written does not end a run: that is told once, and
///        is_complete() says so at the end.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/run_record/run_record.h"

namespace stagecraft::tools {

class RunFolder {
 public:
  /// Makes the folder, or opens that of an earlier start of the same run. `console` outlives it.
  /// Errors: UsageFile if it cannot be written, if another process has it, or if it holds
  ///         something else.
  RunFolder(const std::string& folder, const RunIdentity& what, Console& console);
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  /// Adds an event, whose first field is "event", with its time.
  void append(const nlohmann::ordered_json& event);

  /// Returns whether all events are in the record.
  [[nodiscard]] bool is_complete() const { return complete_; }
  [[nodiscard]] const RunPlaces& places() const { return places_; }

 private:
  void lock();
  void begin(const RunIdentity& what);
  [[nodiscard]] int write(const nlohmann::ordered_json& event);

  const std::string folder_;
  const RunPlaces places_;
  Console& console_;
  int file_ = -1;
  bool torn_ = false;  ///< the last line has no end
  bool complete_ = true;
};

}  // namespace stagecraft::tools
