#include "stagecraft/actors/launch/ways/place_hosts.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

std::vector<Host> with_spares(std::vector<Host> hosts, const std::vector<Host>& spares) {
  const int slots = hosts.empty() ? 0 : std::ranges::max(hosts, {}, &Host::slots).slots;
  for (Host spare : spares) {
    spare.slots = slots;
    hosts.push_back(std::move(spare));
  }
  return hosts;
}

}  // namespace

void check_spares(const std::vector<Host>& hosts, const std::vector<Host>& spares) {
  if (hosts.empty() && !spares.empty()) {
    throw Error(Errc::UsageArgument,
                fmt::format("{} is a spare for hosts of a list, and there is no list: start the "
                            "run with `stagecraft launch --hosts FILE -- train ...`, or name no "
                            "spares",
                            spares.front().name));
  }
  for (auto spare = spares.begin(); spare != spares.end(); ++spare) {
    const std::string& name = spare->name;
    if (name.empty() || name.front() == '-' || name.find_first_of(" =,") != std::string::npos) {
      throw Error(
          Errc::UsageArgument,
          fmt::format("expected names of spare hosts, as ssh takes them, found \"{}\"", name));
    }
    if (std::ranges::find(hosts, name, &Host::name) != hosts.end()) {
      throw Error(Errc::UsageArgument,
                  fmt::format("{0} is a spare and in the list of hosts: take {0} out of one of "
                              "the two",
                              name));
    }
    if (std::find_if(spares.begin(), spare, [&](const Host& s) { return s.name == name; }) !=
        spare) {
      throw Error(Errc::UsageArgument,
                  fmt::format("{} is named twice as a spare: name it once, it has room for as "
                              "many workers as the largest host of the list",
                              name));
    }
  }
}

PlaceHosts::PlaceHosts(const std::vector<Host>& hosts, const std::vector<Host>& spares)
    : hosts_(with_spares(hosts, spares)), listed_(hosts.size()), failed_(hosts_.size(), false) {
  for (std::size_t host = 0; host < listed_; ++host) {
    seats_.insert(
        seats_.end(), static_cast<std::size_t>(hosts[host].slots), {.host = host, .listed = host});
  }
}

void PlaceHosts::use(int places) {
  const std::scoped_lock lock(mutex_);
  used_ = std::max(used_, static_cast<std::size_t>(places));
}

std::optional<Host> PlaceHosts::host_of(int place) const {
  const std::scoped_lock lock(mutex_);
  const auto index = static_cast<std::size_t>(place);
  if (index >= seats_.size()) {
    return std::nullopt;
  }
  Host host = hosts_[seats_[index].host];
  if (seats_[index].host >= listed_) {
    const Host& line = hosts_[seats_[index].listed];
    host.worker = line.worker;
    host.environment = line.environment;
  }
  return host;
}

std::optional<std::string> PlaceHosts::prepare(int place) {
  const std::scoped_lock lock(mutex_);
  Seat& seat = at(place);
  if (std::exchange(seat.begins_anew, false) && seat.host != seat.listed) {
    seat.host = seat.listed;
    return hosts_[seat.host].name + " again";
  }
  const std::optional<std::size_t> next = failed_[seat.host] ? next_host() : std::nullopt;
  if (!next) {
    return std::nullopt;
  }
  seat.host = *next;  // keeps PH-2
  return text(*next);
}

bool PlaceHosts::give_up(int place) {
  const std::scoped_lock lock(mutex_);
  Seat& seat = at(place);
  failed_[seat.host] = true;
  if (next_host()) {
    return true;
  }
  failed_.assign(hosts_.size(), false);
  seat.begins_anew = true;
  return false;
}

// ---- under the lock -----------------------------------------------------------------------------

int PlaceHosts::workers_on(std::size_t host) const {
  return static_cast<int>(std::count_if(seats_.begin(),
                                        seats_.begin() + static_cast<std::ptrdiff_t>(used_),
                                        [&](const Seat& seat) { return seat.host == host; }));
}

std::optional<std::size_t> PlaceHosts::next_host() const {
  const auto find =
      [&](std::size_t begin, std::size_t end, int more) -> std::optional<std::size_t> {
    for (std::size_t host = begin; host < end; ++host) {
      if (!failed_[host] && workers_on(host) < hosts_[host].slots + more) {
        return host;
      }
    }
    return std::nullopt;
  };
  if (listed_ == hosts_.size()) {
    return std::nullopt;  // keeps PH-1
  }
  std::optional<std::size_t> found = find(listed_, hosts_.size(), 0);
  found = found ? found : find(0, listed_, 0);
  return found ? found : find(0, hosts_.size(), 1);
}

std::string PlaceHosts::text(std::size_t host) const {
  return hosts_[host].name + (workers_on(host) > hosts_[host].slots
                                  ? ", which has one worker more than its slots then"
                              : host >= listed_ ? ", a spare"
                                                : ", which has a free slot");
}

}  // namespace stagecraft
