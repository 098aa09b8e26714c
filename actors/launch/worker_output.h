/// WorkerOutput: where what workers write goes: to this process's standard error, each line behind
/// who wrote it, and to a file of the worker's own.
///
///     [rank 2 node-b] 2026-11-23T02:41:07 warning ...
///
/// Lines of several workers come whole. Any thread.
#pragma once

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

namespace stagecraft {

class WorkerOutput {
 public:
  /// `who`: "rank 2 node-b". `file`: written on at its end; empty: none.
  /// Errors: UsageFile for one that cannot be written.
  WorkerOutput(std::string who, const std::string& file);

  void line(std::string_view text) const;

 private:
  std::string who_;
  std::shared_ptr<std::FILE> file_;
};

}  // namespace stagecraft
