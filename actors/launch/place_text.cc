#include "stagecraft/actors/launch/place_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/actors/launch/local_address.h"
#include "stagecraft/actors/launch/ssh.h"
#include "stagecraft/actors/launch/worker_process.h"

namespace stagecraft {
namespace {

/// Where the place is; empty: on this host, or nobody knows yet.
std::string host_text(const SpawnOptions& options, int place) {
  const Host* host = host_of_place(options.hosts, place);
  return host == nullptr ? "" : " on " + host->name;
}

}  // namespace

bool is_elsewhere(const SpawnOptions& options) {
  return options.workers_come || !options.hosts.empty();
}

std::string ranks_text(const SpawnOptions& options, int place) {
  const int first = options.local_ranks + place * options.ranks_per_process;
  return options.ranks_per_process == 1
             ? fmt::format("rank {}", first)
             : fmt::format("ranks {}-{}", first, first + options.ranks_per_process - 1);
}

std::string missing_text(const SpawnOptions& options,
                         std::size_t awaited,
                         const std::vector<int>& missing) {
  std::vector<std::string> who;
  for (const int place : missing) {
    who.push_back(ranks_text(options, place) + host_text(options, place));
  }
  return fmt::format(
      "{} of {} workers; missing {}", awaited - missing.size(), awaited, fmt::join(who, ", "));
}

std::string process_text(const SpawnOptions& options,
                         int place,
                         std::int64_t process,
                         const std::string& host_name) {
  const std::string host =
      options.workers_come && !host_name.empty() ? " on " + host_name : host_text(options, place);
  return process == 0 ? "of " + ranks_text(options, place) + host
                      : fmt::format("process {}{}", process, host);
}

std::string end_text(const SpawnOptions& options, int place, const std::string& end) {
  if (end == fmt::format("ended with exit status {}", kDriverLost)) {
    return fmt::format(
        "has ended, as the driver did not reach it for {} ms: is the way there down?",
        options.silence.count());
  }
  const Host* host = host_of_place(options.hosts, place);
  return host == nullptr ? end : end_behind_ssh(end, host->name);
}

std::string silence_text(const SpawnOptions& options, const std::string& process) {
  return is_elsewhere(options)
             ? fmt::format(
                   "{} is out of reach after at most {} ms of silence: it has ended, or its host "
                   "or the way there is down",
                   process,
                   options.silence.count())
             : fmt::format(
                   "{} is there and has been silent for {} ms", process, options.silence.count());
}

std::string late_text(const SpawnOptions& options,
                      const std::string& missing,
                      const std::string& address,
                      std::uint16_t port) {
  constexpr const char* kThisHostAlone =
      ", on this host alone: for others say at which interface or address they reach it "
      "(STAGECRAFT_INTERFACE, SpawnOptions::interface)";
  return fmt::format("not all workers have joined within {} ms: {}{}",
                     options.join_deadline.count(),
                     missing,
                     options.workers_come
                         ? fmt::format("; start them with stagecraft worker --join {}{}",
                                       host_and_port(address, port),
                                       is_loopback(address) ? kThisHostAlone : "")
                         : "; is that a program that calls worker_main?");
}

}  // namespace stagecraft
