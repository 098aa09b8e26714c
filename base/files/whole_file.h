/// WholeFile writes a file that appears complete in its place, or not at all.
///
///     WholeFile file("a.ckpt");   // throws here if the place cannot be written
///     file.write(bytes);
///     file.publish();             // replaces the old file here
///
/// It writes beside the place and moves the file there last, on the disk that was current where it
/// was made. Thread: the writer's.
/// WF-1: until publish() moves the new file, the old one stays in its place.
/// WF-2: a WholeFile that is dropped before that leaves nothing behind. A process that is killed
///       can leave NAME.part-XXXXXXXX.
/// WF-3: links stay links. The new file keeps an older file's permissions and, if allowed, its
///       owner; without an older file it gets the permissions of the umask.
/// WF-4: once publish() has returned, the file outlives the end of the machine.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "stagecraft/base/files/disk.h"
#include "stagecraft/base/files/output_place.h"

namespace stagecraft {

class WholeFile {
 public:
  /// Begins the file. To learn early whether a path can be written, make a WholeFile and drop it.
  /// Errors: UsageFile for a place that is not a regular file or cannot be replaced, and for a
  /// folder in which no file can be made.
  explicit WholeFile(const std::string& path);
  ~WholeFile();
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;

  /// Appends the bytes. Errors: UsageFile, with the system's reason.
  void write(std::span<const char> bytes);

  /// Makes the disk keep the written bytes and the kernel drop its copy, so that a reader reads the
  /// disk. Errors: as write.
  void synchronize();

  /// Returns the path as the caller gave it.
  [[nodiscard]] const std::string& path() const { return path_; }

  /// Returns the path that holds the bytes until publish().
  [[nodiscard]] const std::string& temporary() const { return temporary_; }

  /// Synchronizes the file, gives it its name and synchronizes that. Errors: as write. If only the
  /// last fails, the file is in its place, but the end of the machine may undo that; the error says
  /// so.
  void publish();

 private:
  void open_beside();

  const std::shared_ptr<Disk> disk_ = Disk::current();
  const std::string path_;
  const OutputPlace place_;
  std::string temporary_;
  int fd_ = -1;
};

}  // namespace stagecraft
