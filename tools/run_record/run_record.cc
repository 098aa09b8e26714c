#include "stagecraft/tools/run_record/run_record.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft::tools {
namespace {

namespace fs = std::filesystem;
using Event = nlohmann::ordered_json;

constexpr int kDeepestEvent = 8;                       // the hardware of a start is 3 deep
constexpr std::uintmax_t kLargestRecord = 64U << 20U;  // 300 restarts of a thousand workers

std::string below(const std::string& folder, const char* name) {
  return (fs::path(folder) / name).string();
}

[[noreturn]] void refuse_folder(const std::string& folder, const std::string& why) {
  throw Error(Errc::UsageFile,
              fmt::format("expected a folder of `train --run-dir`, found '{}', {}", folder, why));
}

/// Returns the object of a line; null if it is no whole event. Keeps REC-2.
Event event_of(const std::string& line) {
  Event event = nlohmann::ordered_json::parse(
      line,
      [](int depth, Event::parse_event_t, const Event&) { return depth < kDeepestEvent; },
      false);
  const bool whole = event.is_object() && event.contains("event") && event.at("event").is_string();
  return whole ? event : Event();
}

void add_to(Event event, RunRecord& record) {
  if (record.what.empty() && event.at("event") == "run" && event.contains("what")) {
    for (const auto& [option, value] : event.at("what").items()) {
      record.what[option] = value.is_string() ? value.get<std::string>() : value.dump();
    }
  }
  record.events.push_back(std::move(event));
}

}  // namespace

RunPlaces::RunPlaces(const std::string& folder)
    : record(below(folder, "record.jsonl")),
      checkpoints(below(folder, "checkpoints")),
      metrics(below(folder, "metrics")),
      logs(below(folder, "logs")),
      strategy(below(folder, "strategy.txt")),
      schedule(below(folder, "schedule.txt")) {}

RunRecord read_run_record(const std::string& folder) {
  const std::string path = RunPlaces(folder).record;
  std::error_code failed;
  if (!fs::is_directory(folder, failed)) {
    refuse_folder(folder, failed ? failed.message() : "which is no folder");
  }
  if (!fs::is_regular_file(path, failed)) {
    refuse_folder(folder, "which has no record.jsonl");
  }
  if (const std::uintmax_t size = fs::file_size(path, failed); !failed && size > kLargestRecord) {
    refuse_folder(folder,
                  fmt::format("whose record.jsonl has {} bytes, more than any run writes", size));
  }
  std::ifstream file(path);
  RunRecord record;
  for (std::string line; std::getline(file, line);) {
    ++record.lines;
    record.is_torn = file.eof();
    if (line.empty()) {
      continue;
    }
    if (Event event = event_of(line); event.is_object()) {
      add_to(std::move(event), record);
    } else {
      ++record.damaged;
    }
  }
  if (!file.eof()) {
    refuse_folder(folder, fmt::format("whose record.jsonl cannot be read: {}", strerror(errno)));
  }
  return record;
}

std::string boot_id() {
  std::string id;
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::getline(file, id);
  return id;
}

bool is_run_going_on(const std::string& folder) {
  const int file = open(RunPlaces(folder).record.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    return false;
  }
  struct flock lock {};  // asks without taking it, so that no run is refused because of us
  lock.l_type = F_RDLCK;
  lock.l_whence = SEEK_SET;
  const bool known = fcntl(file, F_OFD_GETLK, &lock) == 0;
  close(file);
  return known && lock.l_type == F_WRLCK;
}

}  // namespace stagecraft::tools
