#include "stagecraft/actors/launch/fleet/place_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/actors/launch/network/local_address.h"
#include "stagecraft/actors/launch/ways/ssh.h"
#include "stagecraft/actors/launch/worker/worker_process.h"

namespace stagecraft {
namespace {

/// Returns the place's host for messages; empty: this host, or not known yet.
std::string host_text(const SpawnOptions& options, int place) {
  const Host* host = host_of_place(options.hosts, place);
  return host == nullptr ? "" : " on " + host->name;
}

std::string late_advice(const SpawnOptions& options,
                        const std::string& address,
                        std::uint16_t port) {
  if (!options.workers_come) {
    return "is that a program that calls worker_main?";
  }
  if (options.workers_coming >= 0) {  // by `stagecraft launch`, not by hand
    return fmt::format(
        "they are the other processes of this step: have all of them started (squeue --steps), see "
        "their nodes '{}', and do they reach {}? launch --join-seconds allows more time",
        options.meeting_place,
        host_and_port(address, port));
  }
  return fmt::format("start them with stagecraft worker --join {}{}",
                     host_and_port(address, port),
                     is_loopback(address)
                         ? ", on this host alone: for others say at which interface or address "
                           "they reach it (STAGECRAFT_INTERFACE, SpawnOptions::interface)"
                         : "");
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

std::string silence_text(const SpawnOptions& options,
                         const std::string& process,
                         std::chrono::milliseconds standstill) {
  const std::string silence =
      is_elsewhere(options)
          ? fmt::format("{} is out of reach after at most {} ms of silence",
                        process,
                        options.silence.count())
          : fmt::format(
                "{} is there and has been silent for {} ms", process, options.silence.count());
  if (standstill.count() > 0) {
    return fmt::format(
        "{}; this process itself stood still for {:.1f} s before that, as when a job is suspended: "
        "to outlast it, allow a longer silence (launch --silence-seconds, SpawnOptions::silence)",
        silence,
        std::chrono::duration<double>(standstill).count());
  }
  return silence + (is_elsewhere(options)
                        ? ": it has ended or is stopped, or its host or the way there is down"
                        : "");
}

std::string late_text(const SpawnOptions& options,
                      const std::string& missing,
                      const std::string& address,
                      std::uint16_t port) {
  return fmt::format("not all workers have joined within {} ms: {}; {}",
                     options.join_deadline.count(),
                     missing,
                     late_advice(options, address, port));
}

}  // namespace stagecraft
