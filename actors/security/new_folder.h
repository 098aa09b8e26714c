/// NewFolder: a folder of private files that appears whole under its name, or not at all.
///
///     NewFolder folder("DIR");
///     folder.write("key.pem", bytes, 0600);
///     folder.publish();               // here DIR appears
///
/// NF-1: a name that is taken is refused, and what has it is left as it is.
/// NF-2: given up before publish(), it leaves nothing behind. A process that is killed can leave
///       .NAME.part-XXXXXXXX.
/// NF-3: folders are 0700 and files have the mode that was asked for, whatever the umask; nobody
///       could open one of them wider at any time.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

namespace stagecraft::security {

class NewFolder {
 public:
  /// `durable`: the disk keeps what is there when publish() returns.
  /// Errors: UsageFile where `path` is taken or no folder can be made.
  explicit NewFolder(const std::string& path, bool durable = true);
  ~NewFolder();
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  /// `name`: relative. Errors: UsageFile, with the reason of the system.
  void make_folder(const std::string& name);
  /// Makes the file, 0600 while it is written. Errors: as above.
  void write(const std::string& name, std::string_view bytes, mode_t mode);

  /// Gives the folder its name. Errors: UsageFile.
  void publish();

 private:
  const std::string path_;
  const bool durable_;
  std::string temporary_;
  bool published_ = false;
};

/// Puts `bytes` in the place of the file at `path`, in one move; NF-3 holds for the file.
/// Errors: UsageFile; then the older file is as it was.
void replace_file(const std::string& path, std::string_view bytes, mode_t mode);

}  // namespace stagecraft::security
