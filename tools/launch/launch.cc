#include "stagecraft/tools/launch/launch.h"

#include <cstdlib>

#include <fmt/format.h>

#include "stagecraft/actors/launch/network/hosts.h"
#include "stagecraft/actors/launch/network/local_address.h"
#include "stagecraft/actors/launch/ways/ways.h"
#include "stagecraft/actors/security/cluster_credentials.h"
#include "stagecraft/base/error.h"
#include "stagecraft/tools/common/output.h"
#include "stagecraft/tools/launch/keep_worker.h"
#include "stagecraft/tools/launch/options.h"
#include "stagecraft/tools/launch/program.h"
#include "stagecraft/tools/launch/step_folder.h"

namespace stagecraft::tools {
namespace {

void set(const char* name, const std::string& value) {
  if (!value.empty()) {
    setenv(name, value.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): no thread was made yet
  }
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
  become_program(request.program);
}

/// Refuses options that would have no effect.
void check_words(const LaunchRequest& request, const BatchStep& step) {
  if (!request.log_dir.empty()) {
    throw Error(Errc::UsageArgument,
                fmt::format("--log-dir is for workers that are started by ssh; in a step use {}",
                            step.system->log_files));
  }
}

/// Returns how a process gets into a step, for each batch system.
std::string how_to_be_in_a_step() {
  std::string text;
  for (const WayRow& way : all_ways()) {
    if (way.batch_system != nullptr) {
      text += fmt::format(", or {}", way.batch_system->how_to_be_in);
    }
  }
  return text;
}

/// Returns the address of this host for the other nodes of the step.
std::string address_in(const BatchStep& step) {
  try {
    return address_towards(step.other_node);
  } catch (const Error& error) {
    throw Error(error.code(),
                error.message() +
                    "; or name with --interface at which interface the nodes reach each other");
  }
}

std::string milliseconds_of(int seconds) {
  return std::to_string(std::chrono::milliseconds(std::chrono::seconds(seconds)).count());
}

ExitCode drive(const LaunchRequest& request, const BatchStep& step, const std::string& folder) {
  const int workers = step.processes - 1;
  const StepFolder meeting(folder, workers, std::chrono::seconds(request.join_seconds));
  set("STAGECRAFT_WORKERS", "joining");
  set("STAGECRAFT_WORKERS_COMING", std::to_string(workers));
  set("STAGECRAFT_MEETING_PLACE", folder);
  set("STAGECRAFT_LOCAL_RANKS", "1");
  set("STAGECRAFT_RANKS", std::to_string(step.processes));
  if (request.interface.empty() && !step.other_node.empty()) {
    set("STAGECRAFT_INTERFACE", address_in(step));
  }
  return run_program(request.program);
}

ExitCode work(const LaunchRequest& request, const BatchStep& step, const std::string& folder) {
  leave_signals();  // a batch system sends them to all processes of the step, also the driver
  StepGuest guest(
      folder, worker_name(step.process - 1), std::chrono::seconds(request.join_seconds));
  // The program calls for another worker once it has missed this one, and waited for others.
  const std::chrono::seconds patience(request.silence_seconds + request.join_seconds);
  return keep_worker(guest, patience, [&](const std::string& driver) {
    std::vector<std::string> words{"--join",
                                   driver,
                                   "--credentials",
                                   guest.credentials(),
                                   "--place",
                                   std::to_string(step.process - 1),
                                   "--silence",
                                   milliseconds_of(request.silence_seconds),
                                   "--patience",
                                   milliseconds_of(request.join_seconds)};
    if (!request.interface.empty()) {
      words.insert(words.end(), {"--bind", request.interface});
    }
    return words;
  });
}

ExitCode launch_in_step(const LaunchRequest& request, const BatchStep& step) {
  check_words(request, step);
  const std::string place = request.meeting_place.empty() ? step.folder : request.meeting_place;
  check_meeting_place(place);
  const std::string folder = fmt::format("{}/stagecraft-{}", place, step.name);
  return step.process == 0 ? drive(request, step, folder) : work(request, step, folder);
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
  set("STAGECRAFT_SILENCE_SECONDS", std::to_string(request.silence_seconds));
  if (request.hosts) {
    launch_by_ssh(request);
  }
  if (const auto step = batch_step()) {
    return launch_in_step(request, *step);
  }
  throw Error(Errc::UsageArgument, "expected --hosts FILE" + how_to_be_in_a_step());
}

}  // namespace stagecraft::tools
