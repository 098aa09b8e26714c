#include "stagecraft/actors/launch/fleet/place_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/actors/launch/ways/rank_processes.h"
#include "stagecraft/actors/launch/worker/worker_process.h"

namespace stagecraft {

std::string PlaceText::missing(std::size_t awaited, const std::vector<int>& places) const {
  std::vector<std::string> who;
  for (const int place : places) {
    who.push_back(ranks_text(options_, place) + way_.host_text(place, ""));
  }
  return fmt::format(
      "{} of {} workers; missing {}", awaited - places.size(), awaited, fmt::join(who, ", "));
}

/// A fleet knows the id of its own child at once; the id of an ssh is not the worker's.
std::int64_t PlaceText::process_id(const Place& there) const {
  if (there.child() != nullptr && !way_.is_elsewhere()) {
    return there.child()->id();
  }
  return there.member() ? there.member()->process : 0;
}

std::string PlaceText::process(int place, const Place& there) const {
  const std::string host =
      way_.host_text(place, there.member() ? there.member()->host_name : std::string());
  const std::int64_t id = process_id(there);
  return id == 0 ? "of " + ranks_text(options_, place) + host
                 : fmt::format("process {}{}", id, host);
}

std::string PlaceText::ended(int place, const std::string& how) const {
  if (how == fmt::format("ended with exit status {}", kDriverLost)) {
    return fmt::format(
        "has ended, as the driver did not reach it for {} ms: is the way there down?",
        options_.silence.count());
  }
  return way_.end_text(place, how);
}

std::string PlaceText::cause(int place,
                             const Place& there,
                             std::chrono::milliseconds standstill) const {
  const std::string who = process(place, there);
  switch (there.end()->kind) {
    case PlaceEnd::Kind::Condemned:
      return fmt::format("{} was ended by the driver: {}", who, there.end()->text);
    case PlaceEnd::Kind::Ended:
      return fmt::format("{} {}", who, ended(place, there.end()->text));
    default:
      return silence(who, standstill);
  }
}

std::string PlaceText::silence(const std::string& process,
                               std::chrono::milliseconds standstill) const {
  const std::string silence =
      way_.is_elsewhere()
          ? fmt::format("{} is out of reach after at most {} ms of silence",
                        process,
                        options_.silence.count())
          : fmt::format(
                "{} still runs and has been silent for {} ms", process, options_.silence.count());
  if (standstill.count() > 0) {
    return fmt::format(
        "{}; this process itself stood still for {:.1f} s before that, as when a job is suspended: "
        "to outlast it, allow a longer silence (launch --silence-seconds; in a program: "
        "SpawnOptions::silence)",
        silence,
        std::chrono::duration<double>(standstill).count());
  }
  return silence + (way_.is_elsewhere()
                        ? ": it has ended or is stopped, or its host or the way there is down"
                        : "");
}

std::string PlaceText::late(const std::string& missing, const WorkerProcessOptions& join) const {
  return fmt::format("not all workers have joined within {} ms: {}; {}",
                     options_.join_deadline.count(),
                     missing,
                     way_.late_advice(join));
}

}  // namespace stagecraft
