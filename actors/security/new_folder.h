/// NewFolder is a folder of private files that appears whole under its name, or never.
///
///     NewFolder folder("DIR");
///     folder.write("key.pem", bytes, 0600);
///     folder.publish();               // here DIR appears
///
/// NF-1: a name that is taken is refused, and its file or folder does not change.
/// NF-2: an object that is destroyed before publish() leaves nothing behind. A process that is
///       killed can leave .NAME.part-XXXXXXXX.
/// NF-3: folders are 0700 and files have the requested mode, under any umask; at no time do they
///       have wider permissions.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>

namespace stagecraft::security {

class NewFolder {
 public:
  /// `durable`: the disk holds everything when publish() returns.
  /// Errors: UsageFile if `path` is taken or no folder can be made.
  explicit NewFolder(const std::string& path, bool durable = true);
  ~NewFolder();
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  /// Makes a folder inside. `name`: relative. Errors: UsageFile, with the system's reason.
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

/// Replaces the file at `path` by `bytes`, in one move; NF-3 holds for the file.
/// Errors: UsageFile; the old file is unchanged then.
void replace_file(const std::string& path, std::string_view bytes, mode_t mode);

}  // namespace stagecraft::security
