#include "stagecraft/actors/launch/fleet/cut_links.h"

#include <fmt/format.h>

#include "stagecraft/base/log.h"

namespace stagecraft {
namespace {

PlaceTurn turn_of(const FleetMember& member) {
  return {member.place, member.incarnation};
}

}  // namespace

void CutLinks::broke(const std::string& key, const Error& why) const {
  log(Level::Error, "tensors lost", {{"key", key}, {"why", why.what()}});
  if (const auto places = places_.lock()) {
    if (const auto worker = places->member_with(key)) {
      places->condemn(turn_of(*worker), turn_of(*worker), why.what());
    }
  }
}

void CutLinks::cut_from_here(const std::string& key, const Error& why) const {
  if (const auto places = places_.lock()) {
    if (const auto worker = places->member_with(key)) {
      condemn_if_there(
          *worker, *worker, fmt::format("the driver's tensors do not reach it: {}", why.what()));
    }
  }
}

void CutLinks::port_failed(const Error& why) const {
  if (const auto places = places_.lock()) {
    places->lose_port(
        fmt::format("{}; no tensor reaches the driver any more: start the run again, from its last "
                    "checkpoint if it has one",
                    why.what()));
  }
}

void CutLinks::cut_to_here(const caf::node_id& from, const Error& why) const {
  if (const auto places = places_.lock()) {
    if (const auto worker = places->member_at(from)) {
      places->condemn(turn_of(*worker),
                      turn_of(*worker),
                      fmt::format("its tensors do not reach the driver: {}", why.what()));
    }
  }
}

void CutLinks::cut_between(const caf::node_id& from,
                           const std::string& key,
                           const Error& why) const {
  if (const auto places = places_.lock()) {
    const auto worker = places->member_at(from);
    const auto other = places->member_with(key);
    if (worker && other) {
      condemn_if_there(
          *worker,
          *other,
          fmt::format(
              "its tensors do not reach {}: {}", places->name_of(other->place), why.what()));
    }
  }
}

void CutLinks::condemn_if_there(const FleetMember& worker,
                                const FleetMember& other,
                                const std::string& why) const {
  const Future<Here> answer =
      ask<Here>(host_, other.host, "a worker process", patience_, AreYouThere{});
  answer.on_ready([answer, places = places_, turn = turn_of(worker), toward = turn_of(other), why] {
    try {
      static_cast<void>(answer.get());
    } catch (const Error&) {
      return;
    }
    if (const auto here = places.lock()) {
      here->condemn(turn, toward, why);
    }
  });
}

}  // namespace stagecraft
