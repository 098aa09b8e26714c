/// WorkerOutput writes the output of a worker to this process's standard error, each line after the
/// worker's name, and to a file of the worker.
///
///     [rank 2 node-b] 2026-11-23T02:41:07 warning ...
///
/// Lines of several workers come whole. Thread: the one that reads this worker's output.
/// OUT-1: a worker that writes without end does not fill the disk: a file that has grown to its
///        bound becomes FILE.old, in place of an older one, and a new file continues it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace stagecraft {

class WorkerOutput {
 public:
  static constexpr std::size_t kMostBytes = std::size_t{64} << 20U;  ///< of a file

  /// `who`: "rank 2 node-b". `file`: lines are appended to it; empty: none.
  /// Errors: UsageFile for a file that cannot be written.
  WorkerOutput(std::string who, const std::string& file, std::size_t most_bytes = kMostBytes);

  void line(std::string_view text) const;

 private:
  class File;

  std::string who_;
  std::shared_ptr<File> file_;
};

}  // namespace stagecraft
