#include "stagecraft/tools/launch/launch.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>

#include <fmt/format.h>

#include "stagecraft/actors/hosts.h"
#include "stagecraft/actors/launch/local_address.h"
#include "stagecraft/actors/launch/worker_program.h"
#include "stagecraft/actors/security/cluster_credentials.h"
#include "stagecraft/base/error.h"
#include "stagecraft/tools/launch/options.h"
#include "stagecraft/tools/launch/slurm.h"
#include "stagecraft/tools/output.h"

namespace stagecraft::tools {
namespace {

/// Between two looks whether the driver of a step is there.
constexpr std::chrono::milliseconds kLookAgain{100};

void set(const char* name, const std::string& value) {
  if (!value.empty()) {
    setenv(name, value.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): no thread was made yet
  }
}

/// `train` is ours; anything else is found as a shell would. Returns only by an error.
[[noreturn]] void become(std::vector<std::string> program) {
  std::string path = program.front();
  if (path == "train") {
    path = "/proc/self/exe";
    program.insert(program.begin(), "stagecraft");
  }
  std::vector<char*> words;
  for (std::string& word : program) {
    words.push_back(word.data());
  }
  words.push_back(nullptr);
  execvp(path.c_str(), words.data());
  throw Error(
      Errc::UsageFile,
      fmt::format("{} cannot be run: {}; expected train, or a program", path, strerror(errno)));
}

[[noreturn]] void launch_by_ssh(const LaunchRequest& request) {
  std::vector<Host> hosts = read_hosts(*request.hosts);
  for (Host& host : hosts) {
    host.slots = request.per_host.value_or(host.slots);
  }
  set("STAGECRAFT_RANKS", std::to_string(slots_of(hosts)));
  set("STAGECRAFT_WORKERS", "processes");
  set("STAGECRAFT_HOSTS", *request.hosts);
  set("STAGECRAFT_PER_HOST", request.per_host ? std::to_string(*request.per_host) : "");
  set("STAGECRAFT_SSH", request.ssh);
  become(request.program);
}

/// Where the driver of the step listens, once it does.
std::string driver_of(const std::string& meeting_place, std::chrono::seconds patience) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  std::string address;
  while (!std::getline(std::ifstream(meeting_place + "/address"), address)) {
    if (std::chrono::steady_clock::now() > deadline) {
      throw Error(
          Errc::ClusterTimeout,
          fmt::format("process 0 of this step has not said within {} s where it listens: is "
                      "{} a folder that all hosts see? --meeting-place names another",
                      patience.count(),
                      meeting_place));
    }
    std::this_thread::sleep_for(kLookAgain);
  }
  return address;
}

ExitCode launch_in_step(const LaunchRequest& request, const SlurmStep& step) {
  const std::string meeting_place = request.meeting_place.empty()
                                        ? fmt::format("{}/stagecraft-{}", step.folder, step.name)
                                        : request.meeting_place;
  if (step.process == 0) {
    set("STAGECRAFT_WORKERS", "joining");
    set("STAGECRAFT_MEETING_PLACE", meeting_place);
    set("STAGECRAFT_LOCAL_RANKS", "1");
    set("STAGECRAFT_RANKS", std::to_string(step.processes));
    if (request.interface.empty()) {
      set("STAGECRAFT_INTERFACE", address_towards(step.node));
    }
    become(request.program);
  }
  const std::chrono::seconds patience(request.join_seconds);
  std::vector<std::string> words{
      "--join",
      driver_of(meeting_place, patience),
      "--credentials",
      fmt::format("{}/credentials/{}", meeting_place, worker_name(step.process - 1)),
      "--place",
      std::to_string(step.process - 1),
      "--patience",
      std::to_string(std::chrono::milliseconds(patience).count())};
  if (!request.interface.empty()) {
    words.insert(words.end(), {"--bind", request.interface});
  }
  static_cast<void>(run_worker_process(parse_worker_arguments(words)));
  return ExitCode::Good;
}

}  // namespace

ExitCode launch(const std::vector<std::string>& arguments, Console& console) {
  const auto parsed = parse_launch_options(arguments);
  if (const auto* help = std::get_if<LaunchHelp>(&parsed)) {
    write_output("", *help, console);
    return ExitCode::Good;
  }
  const auto& request = std::get<LaunchRequest>(parsed);
  set("STAGECRAFT_INTERFACE", request.interface);
  set("STAGECRAFT_LOG_DIR", request.log_dir);
  set("STAGECRAFT_JOIN_SECONDS", std::to_string(request.join_seconds));
  if (request.hosts) {
    launch_by_ssh(request);
  }
  if (const auto step = slurm_step()) {
    return launch_in_step(request, *step);
  }
  throw Error(Errc::UsageArgument,
              "expected --hosts FILE, or to be run by srun inside a job of Slurm");
}

}  // namespace stagecraft::tools
