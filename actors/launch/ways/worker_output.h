/// WorkerOutput writes the output of a worker to this process's standard error, each line after the
/// worker's name, and to a file of the worker.
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
  /// `who`: "rank 2 node-b". `file`: lines are appended to it; empty: none.
  /// Errors: UsageFile for a file that cannot be written.
  WorkerOutput(std::string who, const std::string& file);

  void line(std::string_view text) const;

 private:
  std::string who_;
  std::shared_ptr<std::FILE> file_;
};

}  // namespace stagecraft
