/// WholeFile: a file that appears whole in its place, or not at all.
///
///     WholeFile file("a.ckpt");   // found out here: a place that cannot be written
///     file.write(bytes);
///     file.publish();             // here it takes the place of the old one
///
/// It is written beside its place and moved there last. Thread: the writer's.
/// WF-1: until publish() returns, what stood there still stands there.
/// WF-2: given up before that, it leaves nothing behind. A process that is killed can leave
///       NAME.part-XXXXXXXX.
/// WF-3: links stay links. An older file's permissions and, where allowed, its owner are kept; a
/// new
///       file gets those of the umask.
#pragma once

#include <span>
#include <string>

#include "stagecraft/base/output_place.h"

namespace stagecraft {

class WholeFile {
 public:
  /// Begins the file: whoever wants to know early whether it can be written makes one and drops it.
  /// Errors: UsageFile for a place that is no regular file or cannot be replaced, and for a folder
  /// in which no file can be made.
  explicit WholeFile(const std::string& path);
  ~WholeFile();
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;

  /// Errors: UsageFile, with the reason of the system.
  void write(std::span<const char> bytes);

  /// Has the disk keep what was written, and the kernel forget it: who reads it then reads the
  /// disk. Errors: as write.
  void synchronize();

  /// As named by who made it.
  [[nodiscard]] const std::string& path() const { return path_; }

  /// Where the bytes are until publish().
  [[nodiscard]] const std::string& temporary() const { return temporary_; }

  /// Synchronizes, and gives the file its name. Errors: as write.
  void publish();

 private:
  void open_beside();

  const std::string path_;
  const OutputPlace place_;
  std::string temporary_;
  int fd_ = -1;
};

}  // namespace stagecraft
