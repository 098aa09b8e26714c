#include "stagecraft/tools/run_record/run_folder.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <ostream>
#include <string>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/base/error.h"
#include "stagecraft/base/files/write_all.h"

namespace stagecraft::tools {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_run_dir(const std::string& folder, const std::string& why) {
  throw Error(Errc::UsageFile, fmt::format("--run-dir: '{}' {}", folder, why));
}

[[noreturn]] void refuse_unwritable(const std::string& folder, int error) {
  refuse_run_dir(folder, fmt::format("cannot be written: {}; name another", strerror(error)));
}

std::string utc_time() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

std::string value_text(const RunIdentity& what, const std::string& option) {
  const auto found = what.find(option);
  return found == what.end() || found->second.empty() ? "no " + option
                                                      : option + " " + found->second;
}

/// Returns the first difference: "it has --model llama, this run has --model vit"; empty if there
/// is none. Contents of files differ in the line of their option.
std::string difference_of_runs(const RunIdentity& there, const RunIdentity& here) {
  RunIdentity all = there;
  all.insert(here.begin(), here.end());
  for (const auto& [option, value] : all) {
    const std::string old = value_text(there, option), now = value_text(here, option);
    if (old == now) {
      continue;
    }
    return old.find('\n') == std::string::npos && now.find('\n') == std::string::npos
               ? fmt::format("it has {}, this run has {}", old, now)
               : fmt::format("the file of {} has other contents now", option);
  }
  return "";
}

}  // namespace

RunFolder::RunFolder(const std::string& folder, const RunIdentity& what, Console& console)
    : folder_(folder), places_(folder), console_(console) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) {
    refuse_unwritable(folder, failed.value());
  }
  const std::string* const kept[] = {
      &places_.checkpoints, &places_.metrics, &places_.strategy, &places_.schedule};
  if (!fs::exists(places_.record, failed) &&
      std::ranges::any_of(kept,
                          [&](const std::string* path) { return fs::exists(*path, failed); })) {
    refuse_run_dir(folder, "has files of a run, but no record of what it is: name a new folder");
  }
  file_ = open(places_.record.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file_ < 0) {
    refuse_unwritable(folder, errno);
  }
  try {
    lock();
    begin(what);
  } catch (...) {
    close(file_);
    throw;
  }
}

RunFolder::~RunFolder() {
  close(file_);
}

/// Keeps FOL-1. On a file system without locks, every process gets the folder.
void RunFolder::lock() {
  struct flock whole {};  // of the open file, so that the close of another descriptor keeps it
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  if (fcntl(file_, F_OFD_SETLK, &whole) != 0 && (errno == EAGAIN || errno == EACCES)) {
    refuse_run_dir(folder_,
                   "is in use: its run is going on; wait for its end, or name another folder");
  }
}

/// Keeps FOL-2.
void RunFolder::begin(const RunIdentity& what) {
  const RunRecord record = read_run_record(folder_);
  if (record.events.empty()) {  // new, or its first start ended before it had a whole line
    if (record.lines > (record.is_torn ? 1 : 0)) {
      refuse_run_dir(
          folder_,
          "has a record.jsonl that is no record of a run, or is broken: name a new folder");
    }
    if (ftruncate(file_, 0) != 0) {
      refuse_unwritable(folder_, errno);
    }
    if (const int error = write({{"event", "run"}, {"what", what}}); error != 0) {
      refuse_unwritable(folder_, error);
    }
    return;
  }
  if (record.what.empty()) {
    refuse_run_dir(folder_, "has a record that does not say what its run is: name a new folder");
  }
  if (const std::string other = difference_of_runs(record.what, what); !other.empty()) {
    refuse_run_dir(folder_,
                   fmt::format("holds another run: {}; give the options of that run, which "
                               "`stagecraft doctor --run {}` prints, or name another folder",
                               other,
                               folder_));
  }
  torn_ = record.is_torn;
}

/// Returns 0, or the errno of the failure.
int RunFolder::write(const nlohmann::ordered_json& event) {
  nlohmann::ordered_json timed{{"event", event.at("event")}, {"time", utc_time()}};
  timed.update(event);
  const std::string line =
      (torn_ ? "\n" : "") +
      timed.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
  int error = write_all(file_, line);
  if (error == 0 && fdatasync(file_) != 0) {
    error = errno;
  }
  torn_ = error != 0;
  return error;
}

void RunFolder::append(const nlohmann::ordered_json& event) {
  const int error = write(event);
  if (error == 0 || !complete_) {
    return;
  }
  complete_ = false;
  console_.err << fmt::format(
                      "stagecraft: --run-dir: '{}' cannot be written: {}; the run continues, its "
                      "record has gaps, and it exits with 2\n",
                      places_.record,
                      strerror(error))
               << std::flush;
}

}  // namespace stagecraft::tools
