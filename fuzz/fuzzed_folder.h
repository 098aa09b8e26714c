/// FuzzedFolder is the folder of a target whose reader reads files. It ends with the program.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

namespace stagecraft::fuzz {

class FuzzedFolder {
 public:
  FuzzedFolder()
      : path_(std::filesystem::temp_directory_path() /
              ("stagecraft-fuzz-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(path_);
  }
  FuzzedFolder(const FuzzedFolder&) = delete;
  FuzzedFolder& operator=(const FuzzedFolder&) = delete;
  ~FuzzedFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] std::string path() const { return path_.string(); }

  void clear() const {
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      std::filesystem::remove_all(entry.path());
    }
  }
  void write(std::string_view name, std::string_view bytes) const {
    std::ofstream(path_ / name, std::ios::binary) << bytes;
  }

 private:
  const std::filesystem::path path_;
};

}  // namespace stagecraft::fuzz
