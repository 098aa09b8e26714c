#include "stagecraft/tools/launch/step_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/actors/security/cluster_credentials.h"
#include "stagecraft/actors/security/credential_paths.h"
#include "stagecraft/base/error.h"
#include "stagecraft/tools/launch/program.h"

namespace stagecraft::tools {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

/// Pause between two looks at other processes' files.
constexpr std::chrono::milliseconds kLookAgain{100};
constexpr std::chrono::seconds kLongestStart = std::chrono::hours(1);

/// A network file system caches that a file is missing. Opening the folder above makes it ask
/// again.
bool is_there(const fs::path& path) {
  std::error_code ignored;
  static_cast<void>(fs::directory_iterator(path.parent_path(), ignored));
  return fs::exists(path, ignored);
}

}  // namespace

void check_meeting_place(const std::string& place) {
  std::error_code fault;
  const bool is_folder = fs::is_directory(place, fault);
  if (!is_folder || access(place.c_str(), W_OK | X_OK) != 0) {
    throw Error(Errc::UsageFile,
                fmt::format("the processes of this step cannot meet in '{}': {}; name with "
                            "--meeting-place a folder that all hosts see and can write to",
                            place,
                            is_folder ? std::strerror(errno) : "it is no folder on this host"));
  }
}

StepFolder::StepFolder(std::string path, int workers, std::chrono::seconds patience)
    : path_(std::move(path)), workers_(workers), deadline_(Clock::now() + patience) {
  if (mkdir(path_.c_str(), mode_t{0700}) != 0) {
    throw Error(Errc::UsageFile,
                fmt::format("the folder '{}', where the processes of this step are to meet, cannot "
                            "be made: {}; {}",
                            path_,
                            std::strerror(errno),
                            errno == EEXIST ? "remove it, or name another --meeting-place"
                                            : "name another --meeting-place"));
  }
}

StepFolder::~StepFolder() {
  std::error_code ignored;
  fs::remove_all(path_ + "/credentials", ignored);                                  // keeps STP-3
  while (!all_have_been_here() && !is_told_to_end() && Clock::now() < deadline_) {  // keeps STP-2
    std::this_thread::sleep_for(kLookAgain);
  }
  fs::remove_all(path_, ignored);
}

bool StepFolder::all_have_been_here() const {
  for (int worker = 0; worker < workers_; ++worker) {
    if (!is_there(path_ + "/" + worker_name(worker))) {
      return false;
    }
  }
  return true;
}

std::optional<std::string> StepGuest::await_driver() {
  const auto started = Clock::now();
  while (true) {
    const auto waited = Clock::now() - started;
    if (is_there(folder_)) {
      if (!std::exchange(has_been_there_, true)) {
        std::ofstream(folder_ + "/" + worker_).flush();
      }
      std::string address;
      if (is_there(folder_ + "/address") &&
          std::getline(std::ifstream(folder_ + "/address"), address)) {
        return address;
      }
      if (waited > kLongestStart) {
        throw Error(Errc::ClusterTimeout,
                    fmt::format("process 0 of this step has not said within {} s where it listens",
                                kLongestStart.count()));
      }
    } else if (has_been_there_) {
      return std::nullopt;
    } else if (waited > patience_) {
      throw Error(
          Errc::ClusterTimeout,
          fmt::format("process 0 of this step has not made '{}' within {} s, or had ended "
                      "before this process came: see what process 0 says; if it says "
                      "nothing, do all hosts see that folder? --meeting-place names another",
                      folder_,
                      patience_.count()));
    }
    std::this_thread::sleep_for(kLookAgain);
  }
}

std::string StepGuest::call() const {
  const fs::path certificate = fs::path(credentials()) / security::kCertificateFile;
  std::string text;
  if (is_there(certificate)) {
    std::getline(std::ifstream(certificate), text, '\0');
  }
  return text;
}

bool StepGuest::is_over() const {
  return !is_there(folder_);
}

std::string StepGuest::credentials() const {
  return fmt::format("{}/credentials/{}", folder_, worker_);
}

}  // namespace stagecraft::tools
