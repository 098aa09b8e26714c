#include "stagecraft/actors/launch/ways/worker_output.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft {

/// Thread: the one that reads the worker's output.
class WorkerOutput::File {
 public:
  File(const std::string& who, std::string path, std::size_t most)
      : path_(std::move(path)), most_(most) {
    std::error_code ignored;  // opening the file reports the fault
    std::filesystem::create_directories(std::filesystem::path(path_).parent_path(), ignored);
    open();
    if (!file_) {
      throw Error(
          Errc::UsageFile,
          fmt::format("the output of {} cannot be written to {}: {}", who, path_, strerror(errno)));
    }
  }

  void write(std::string_view line) {
    if (bytes_ + line.size() > most_) {
      begin_anew();
    }
    if (file_) {
      std::fwrite(line.data(), 1, line.size(), file_.get());
      std::fflush(file_.get());
      bytes_ += line.size();
    }
  }

 private:
  void open() {
    file_.reset(std::fopen(path_.c_str(), "ae"));
    std::error_code ignored;
    const auto size = std::filesystem::file_size(path_, ignored);
    bytes_ = ignored ? 0 : static_cast<std::size_t>(size);
  }

  /// Keeps OUT-1.
  void begin_anew() {
    std::error_code failed;
    std::filesystem::rename(path_, path_ + ".old", failed);
    if (failed) {
      file_.reset();  // else it would grow on
    } else {
      open();
    }
  }

  const std::string path_;
  const std::size_t most_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_{nullptr, &std::fclose};
  std::size_t bytes_ = 0;
};

WorkerOutput::WorkerOutput(std::string who, const std::string& file, std::size_t most_bytes)
    : who_(std::move(who)) {
  if (!file.empty()) {
    file_ = std::make_shared<File>(who_, file, most_bytes);
  }
}

void WorkerOutput::line(std::string_view text) const {
  const std::string line = fmt::format("[{}] {}\n", who_, text);
  std::fwrite(line.data(), 1, line.size(), stderr);
  if (file_) {
    file_->write(std::string_view(line).substr(who_.size() + 3));
  }
}

}  // namespace stagecraft
