#include "stagecraft/actors/launch/ways/worker_output.h"

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft {

WorkerOutput::WorkerOutput(std::string who, const std::string& file) : who_(std::move(who)) {
  if (file.empty()) {
    return;
  }
  std::error_code ignored;  // opening the file reports the fault
  std::filesystem::create_directories(std::filesystem::path(file).parent_path(), ignored);
  std::FILE* opened = std::fopen(file.c_str(), "ae");
  if (opened == nullptr) {
    throw Error(
        Errc::UsageFile,
        fmt::format("the output of {} cannot be written to {}: {}", who_, file, strerror(errno)));
  }
  file_ = {opened, &std::fclose};
}

void WorkerOutput::line(std::string_view text) const {
  const std::string line = fmt::format("[{}] {}\n", who_, text);
  std::fwrite(line.data(), 1, line.size(), stderr);
  if (file_) {
    std::fwrite(line.data() + who_.size() + 3, 1, line.size() - who_.size() - 3, file_.get());
    std::fflush(file_.get());
  }
}

}  // namespace stagecraft
