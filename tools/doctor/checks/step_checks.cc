#include "stagecraft/tools/doctor/checks/step_checks.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>
#include <thread>

#include <fmt/format.h>

#include "stagecraft/base/byte_count.h"
#include "stagecraft/base/error.h"
#include "stagecraft/base/process/host_name.h"
#include "stagecraft/tools/doctor/talk/exam.h"
#include "stagecraft/tools/launch/step_folder.h"

namespace stagecraft::tools {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::milliseconds kLookAgain{50};

std::string allocated_text(const BatchStep& step) {
  const std::string processors =
      step.processors > 0
          ? fmt::format("{} processors", step.processors)
          : fmt::format("number of processors not given ({})", step.system->processors);
  const std::string memory =
      step.memory_bytes > 0
          ? fmt::format("{} of memory on this node", bytes_text(step.memory_bytes))
          : fmt::format("limit of memory not told (only to {})", step.system->memory);
  return processors + ", " + memory;
}

Finding task_finding(const BatchStep& step) {
  const std::string host = host_name();
  const std::string node =
      step.node == host ? step.node : fmt::format("{} (the host calls itself {})", step.node, host);
  return {.host = kHere,
          .check = std::string(step.system->name),
          .level = Level::Ok,
          .what = fmt::format("node {}, task {} of {} of step {}: {}",
                              node,
                              step.process,
                              step.processes,
                              step.name,
                              allocated_text(step)),
          .remedy = {}};
}

/// Returns how many processes of the step have left a file of this kind.
int count(const fs::path& folder, const std::string& kind, int processes) {
  int there = 0;
  std::error_code ignored;
  static_cast<void>(fs::directory_iterator(folder, ignored));  // refreshes a network file system
  for (int process = 0; process < processes; ++process) {
    there += fs::exists(folder / fmt::format("{}-{}", kind, process), ignored) ? 1 : 0;
  }
  return there;
}

int wait_for_all(const fs::path& folder,
                 const std::string& kind,
                 int processes,
                 std::chrono::steady_clock::time_point deadline) {
  int there = count(folder, kind, processes);
  while (there < processes && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(kLookAgain);
    there = count(folder, kind, processes);
  }
  return there;
}

/// Leaves a file for the others and looks for theirs. Process 0 removes the folder once all have
/// looked. Returns how many files it has found.
int meet(const BatchStep& step, std::chrono::seconds patience) {
  const fs::path folder = fs::path(step.folder) / fmt::format("stagecraft-doctor-{}", step.name);
  const auto deadline = std::chrono::steady_clock::now() + patience;
  std::error_code ignored;  // a file that cannot be written is not found
  fs::create_directory(folder, ignored);
  const auto leave = [&](const char* kind) {
    std::ofstream(folder / fmt::format("{}-{}", kind, step.process)).flush();
  };
  leave("here");
  const int there = wait_for_all(folder, "here", step.processes, deadline);
  leave("seen");
  if (step.process == 0) {
    static_cast<void>(wait_for_all(folder, "seen", step.processes, deadline));
    fs::remove_all(folder, ignored);
  }
  return there;
}

Finding meeting_finding(const BatchStep& step, std::chrono::seconds patience) {
  Finding finding{
      .host = kHere, .check = "meeting place", .level = Level::Ok, .what = {}, .remedy = {}};
  try {
    check_meeting_place(step.folder);
  } catch (const Error& error) {
    finding.level = Level::Problem;
    finding.what = error.message();
    finding.remedy = "submit from a folder that all nodes see, or name one: launch --meeting-place";
    return finding;
  }
  const int there = meet(step, patience);
  finding.what = fmt::format(
      "'{}': {} of {} processes of this step meet there", step.folder, there, step.processes);
  if (there < step.processes) {
    finding.level = Level::Problem;
    finding.remedy = fmt::format(
        "start the doctor for all tasks ({}); if you did, not all nodes see the folder: "
        "name one that they see with launch --meeting-place",
        step.system->starter);
  }
  return finding;
}

}  // namespace

std::vector<Finding> check_step(const BatchStep& step, std::chrono::seconds patience) {
  return {task_finding(step), meeting_finding(step, patience)};
}

}  // namespace stagecraft::tools
