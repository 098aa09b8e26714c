#include "stagecraft/actors/launch/fleet.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/actors/launch/local_address.h"
#include "stagecraft/actors/launch/ssh.h"
#include "stagecraft/actors/launch/worker_output.h"
#include "stagecraft/actors/security/cluster_credentials.h"
#include "stagecraft/base/log.h"
#include "stagecraft/base/whole_file.h"

namespace stagecraft {
namespace {

constexpr const char* kLoopback = "127.0.0.1";
/// Waiting that takes longer is told, and told again so often.
constexpr std::chrono::seconds kPatienceOfPeople{1}, kTellAgain{5};
/// Made with the credentials of a cluster; further ones when they are needed.
constexpr int kMembers = 4;
constexpr std::chrono::hours kMemberLife{24};
/// A process's exit is known to the system a moment later than its connections are closed.
constexpr std::chrono::milliseconds kMoment{100}, kMomentOfSsh{500};

struct AdmissionState {
  static inline const char* name = "admission";
  std::set<caf::node_id> agreed;  ///< processes whose Hello matched and that have not joined
};

AdmissionActor::behavior_type admission(AdmissionActor::stateful_pointer<AdmissionState> self,
                                        const std::weak_ptr<Fleet>& fleet) {
  self->set_down_handler([fleet](const caf::down_msg& m) {
    if (const auto there = fleet.lock()) {
      there->lost(m.source);
    }
  });
  return {[self, fleet](const Hello& m) {
            Welcome welcome{.fingerprint = build_fingerprint(), .refusal = {}};
            welcome.refusal = refusal_of(m, welcome);
            const auto there = fleet.lock();
            if (there && !welcome.refusal.empty()) {
              there->refused(refusal_text(m, welcome));
            }
            if (const auto& sender = self->current_sender(); sender && welcome.refusal.empty()) {
              self->state.agreed.insert(sender->node());
            }
            return welcome;
          },
          [self, fleet](const Join& m) {
            Joined joined;
            try {
              const auto& sender = self->current_sender();
              if (!sender || self->state.agreed.erase(sender->node()) == 0) {  // keeps HE-1
                throw Error(Errc::ClusterMember,
                            "a worker joins after it has said which build it is, and was answered "
                            "that this is the driver's: this one has not");
              }
              const auto host = caf::actor_cast<WorkerHostActor>(sender);
              self->monitor(host);
              if (const auto there = fleet.lock()) {
                joined.later = !there->joined(m, host);
              }
            } catch (const Error& error) {
              joined.error = to_chain(error);
            }
            return joined;
          }};
}

/// Of this host, at which workers reach it.
std::string address_for(const SpawnOptions& options) {
  return options.interface.empty() && options.hosts.empty()
             ? kLoopback
             : address_for_hosts(options.interface, options.hosts);
}

std::string ranks_text(const SpawnOptions& options, int place) {
  const int first = options.local_ranks + place * options.ranks_per_process;
  return options.ranks_per_process == 1
             ? fmt::format("rank {}", first)
             : fmt::format("ranks {}-{}", first, first + options.ranks_per_process - 1);
}

/// Where the place is, for people; empty: on this host.
std::string host_text(const SpawnOptions& options, int place) {
  const Host* host = host_of_place(options.hosts, place);
  return host == nullptr ? "" : " on " + host->name;
}

std::string address_file(const SpawnOptions& options) {
  return options.meeting_place + "/address";
}

/// Null where they are given.
std::unique_ptr<TemporaryCredentials> made_for(const SpawnOptions& options) {
  if (!options.credentials.empty()) {
    return nullptr;
  }
  return options.meeting_place.empty() ? std::make_unique<TemporaryCredentials>(kMembers)
                                       : std::make_unique<TemporaryCredentials>(
                                             kMembers, options.meeting_place + "/credentials");
}

std::string member_folder(const std::string& credentials, int place) {
  return credentials + "/" + worker_name(place);
}

}  // namespace

Fleet::Fleet(const SpawnOptions& options)
    : options_(options),
      program_(find_worker_program(options.program)),
      made_(made_for(options)),
      credentials_(made_ ? made_->dir() : options.credentials),
      address_(address_for(options)),
      host_(open_control_plane(load_credentials(credentials_ + "/driver"),
                               {.interval = options.heartbeat, .silence = options.silence})) {}

std::shared_ptr<Fleet> Fleet::open(const SpawnOptions& options) {
  std::shared_ptr<Fleet> fleet(new Fleet(options));
  fleet->port_ = DataPort::open(
      {.bind = any_port_of(fleet->address_),
       .when_broken = [there = fleet->weak_from_this()](const std::string& key, const Error& why) {
         if (const auto here = there.lock()) {
           here->link_broke(key, why);
         }
       }});
  return fleet;
}

Fleet::~Fleet() {
  if (admission_) {
    unpublish(host_, admission_, listening_);
    caf::anon_send_exit(admission_, caf::exit_reason::user_shutdown);
  }
  if (!options_.meeting_place.empty()) {
    std::error_code ignored;  // it is a courtesy: the next one writes over it
    std::filesystem::remove(address_file(options_), ignored);
  }
}

void Fleet::require(int places) {
  std::vector<int> all;
  {
    const std::scoped_lock lock(mutex_);
    if (!options_.hosts.empty() && places > slots_of(options_.hosts)) {
      throw Error(Errc::UsageArgument,
                  fmt::format("{} worker processes are needed, and the hosts have places for {}: "
                              "give them more slots, or name more hosts",
                              places,
                              slots_of(options_.hosts)));
    }
    if (options_.workers_come && options_.workers_coming >= 0 && places > options_.workers_coming) {
      throw Error(
          Errc::UsageArgument,
          fmt::format("{} worker processes are needed, and {} come: start more of them (in a "
                      "step of Slurm srun --ntasks), or use fewer ranks",
                      places,
                      options_.workers_coming));
    }
    const bool is_first = !admission_;
    if (is_first) {
      admission_ = host_.system().spawn(admission, weak_from_this());
      listening_ = publish(host_, admission_, address_, options_.port);
    }
    places_.resize(std::max(places_.size(), static_cast<std::size_t>(places)));
    for (int place = 0; place < places; ++place) {
      all.push_back(place);
      if (!places_[static_cast<std::size_t>(place)].awaited) {
        start(place);
      }
    }
    if (is_first) {
      tell_address();
    }
  }
  wait_for(all);
}

void Fleet::tell_address() const {
  const std::string address = host_and_port(address_, listening_);
  log(is_elsewhere() ? Level::Info : Level::Debug,
      "workers join here",
      {{"control", address}, {"data", port_->address().endpoint}});
  if (!options_.meeting_place.empty()) {
    WholeFile file(address_file(options_));
    file.write(address + "\n");
    file.publish();
  }
}

void Fleet::replace(int place) {
  std::unique_ptr<ChildProcess> old;
  {
    const std::scoped_lock lock(mutex_);
    if (place < 0 || static_cast<std::size_t>(place) >= places_.size()) {
      throw Error(Errc::UsageArgument,
                  "no trainer of this cluster has had a worker process for this rank yet");
    }
    Place& there = places_[static_cast<std::size_t>(place)];
    end_process(there);
    old = std::move(there.child);
    if (there.member) {
      port_->forget(there.member->port);
    }
    there.member.reset();
    there.awaited = false;
    there.lost = false;
    there.condemned.clear();
    ++there.incarnation;
  }
  old.reset();  // gone before its successor comes
  {
    const std::scoped_lock lock(mutex_);
    start(place);
  }
  wait_for({place});
}

/// Requires: the mutex.
void Fleet::end_process(Place& place) {
  if (place.child) {
    place.child->kill();
  } else if (place.member) {
    caf::anon_send_exit(place.member->host, caf::exit_reason::kill);
  }
}

/// The worker of a place, told where to join.
ChildProgram Fleet::program_for(int place) {
  const Place& there = places_[static_cast<std::size_t>(place)];
  const Host* host = host_of_place(options_.hosts, place);
  const std::string folder = member_folder(credentials_, place);
  std::vector<std::string> words = program_.arguments;
  for (std::string& word :
       worker_arguments({.host = address_,
       .port = listening_,
       .credentials = host == nullptr ? folder : kCredentialsFromLifeline,
       .place = place,
       .incarnation = there.incarnation,
       .lifeline = kLifeline,
       .bind = host == nullptr ? address_ : host->address,
       .heartbeat = {.interval = options_.heartbeat, .silence = options_.silence},
       .patience = options_.join_deadline})) {
    words.push_back(std::move(word));
  }
  ChildProgram program{.path = program_.path, .arguments = words, .input = {}, .on_line = {}};
  if (host != nullptr) {
    words.insert(words.begin(), host->worker.empty() ? program_.path : host->worker);
    program = ssh_worker(options_.ssh, *host, words);
    program.input = text_of_member(folder);
  }
  if (host != nullptr || !options_.log_dir.empty()) {
    const std::string ranks = ranks_text(options_, place);
    std::string file = options_.log_dir;
    if (!file.empty()) {
      file += "/" + ranks + ".log";
      std::ranges::replace(file.begin() + static_cast<std::ptrdiff_t>(options_.log_dir.size()),
                           file.end(),
                           ' ',
                           '-');
    }
    const std::string who = ranks + (host == nullptr ? "" : " " + host->name);
    program.on_line = [output = WorkerOutput(who, file)](std::string_view line) {
      output.line(line);
    };
  }
  return program;
}

/// Requires: the mutex.
void Fleet::start(int place) {
  Place& there = places_[static_cast<std::size_t>(place)];
  there.awaited = true;
  if (made_ &&
      (there.incarnation > 0 || !std::filesystem::exists(member_folder(credentials_, place)))) {
    issue_member(credentials_, worker_name(place), kMemberLife);
    issue_member(credentials_, "driver", kMemberLife);  // both are looked at when one joins
  }
  if (options_.workers_come) {
    return;
  }
  there.child = std::make_unique<ChildProcess>(program_for(place), [fleet = weak_from_this()] {
    if (const auto here = fleet.lock()) {
      const std::scoped_lock lock(here->mutex_);
      here->changed_.notify_all();
    }
  });
}

/// Those that have not joined.
std::vector<int> Fleet::missing_of(const std::vector<int>& places) const {
  std::vector<int> missing;
  for (const int place : places) {
    if (!places_[static_cast<std::size_t>(place)].member) {
      missing.push_back(place);
    }
  }
  return missing;
}

std::string Fleet::missing_text(const std::vector<int>& missing) const {
  std::vector<std::string> who;
  for (const int place : missing) {
    who.push_back(ranks_text(options_, place) + host_text(options_, place));
  }
  const auto awaited = std::ranges::count(places_, true, &Place::awaited);
  return fmt::format("{} of {} workers; missing {}",
                     awaited - static_cast<std::ptrdiff_t>(missing.size()),
                     awaited,
                     fmt::join(who, ", "));
}

void Fleet::wait_for(const std::vector<int>& places) {
  const auto started = std::chrono::steady_clock::now();
  const Deadline deadline = started + options_.join_deadline;
  Deadline tell = started + kPatienceOfPeople;
  std::unique_lock lock(mutex_);
  const auto has_ended = [&](int place) {
    const auto& child = places_[static_cast<std::size_t>(place)].child;
    return child && child->end(std::chrono::milliseconds(0)).has_value();
  };
  std::vector<int> missing = missing_of(places);
  while (!missing.empty()) {
    const bool ended = std::ranges::any_of(missing, has_ended);
    const auto now = std::chrono::steady_clock::now();
    if (ended || now >= deadline) {
      throw_missing(missing);
    }
    if (now >= tell && is_elsewhere() && options_.on_wait) {
      options_.on_wait(missing_text(missing));
      tell = now + kTellAgain;
    }
    changed_.wait_until(lock, std::min(deadline, std::max(tell, now)));
    const std::vector<int> before = std::exchange(missing, missing_of(places));
    if (before != missing && tell > started + kPatienceOfPeople) {
      tell = std::chrono::steady_clock::now();
    }
  }
}

void Fleet::throw_missing(const std::vector<int>& missing) const {
  const std::string why = refusal_.empty() ? "" : ": " + refusal_;
  for (const int place : missing) {
    const Place& there = places_[static_cast<std::size_t>(place)];
    if (!there.child) {
      continue;
    }
    if (const auto end = there.child->end(std::chrono::milliseconds(0))) {
      throw Error(Errc::ClusterMember,
                  fmt::format("worker {} {} before it had joined{}; it has said why on standard "
                              "error",
                              process_text(place),
                              end_text(place, *end),
                              why));
    }
  }
  throw Error(Errc::ClusterTimeout,
              fmt::format("not all workers have joined within {} ms: {}{}{}",
                          options_.join_deadline.count(),
                          missing_text(missing),
                          why,
                          options_.workers_come
                              ? fmt::format("; start them with stagecraft worker --join {}",
                                            host_and_port(address_, listening_))
                              : "; is that a program that calls worker_main?"));
}

/// On its host; 0 while that is not known. Of a child of ours nobody else has to tell.
std::int64_t Fleet::process_id(const Place& place) const {
  if (place.child && options_.hosts.empty()) {
    return place.child->id();
  }
  return place.member ? place.member->process : 0;
}

/// "process 4711", "process 4711 on node-b", "of rank 2 on node-b" while it has none.
std::string Fleet::process_text(int place) const {
  const Place& there = places_[static_cast<std::size_t>(place)];
  const std::string host = options_.workers_come && there.member ? " on " + there.member->host_name
                                                                 : host_text(options_, place);
  const std::int64_t process = process_id(there);
  return process == 0 ? "of " + ranks_text(options_, place) + host
                      : fmt::format("process {}{}", process, host);
}

std::string Fleet::end_text(int place, const std::string& end) const {
  const Host* host = host_of_place(options_.hosts, place);
  return host == nullptr ? end : end_behind_ssh(end, host->name);
}

std::string Fleet::name_of(int place) const {
  const std::scoped_lock lock(mutex_);
  return "worker " + process_text(place);
}

FleetMember Fleet::member(int place) const {
  const std::scoped_lock lock(mutex_);
  const Place& there = places_.at(static_cast<std::size_t>(place));
  if (!there.member || there.lost) {
    throw Error(Errc::ClusterMember,
                fmt::format("{} of this cluster is lost: Cluster::replace puts another worker "
                            "process in its place",
                            worker_name(place)));
  }
  return *there.member;
}

WorkerPlace Fleet::who(int place) const {
  const std::scoped_lock lock(mutex_);
  if (static_cast<std::size_t>(place) >= places_.size()) {
    return {};
  }
  const Place& there = places_[static_cast<std::size_t>(place)];
  WorkerPlace who{.incarnation = there.incarnation};
  who.process = process_id(there);
  if (there.member) {
    who.address = there.member->port.endpoint;
    who.host = is_elsewhere() ? there.member->host_name : "";
  }
  return who;
}

std::string Fleet::cause_of_end(int place, std::int64_t incarnation) const {
  std::unique_lock lock(mutex_);
  const Place& there = places_.at(static_cast<std::size_t>(place));
  const auto is_another = [&] { return there.incarnation != incarnation || !there.awaited; };
  if (is_another()) {
    return {};
  }
  const auto end = [&] {
    return there.child ? there.child->end(std::chrono::milliseconds(0)) : std::nullopt;
  };
  // Others may have heard of it before this fleet has.
  changed_.wait_for(lock, kMoment, [&] { return is_another() || there.lost || end().has_value(); });
  if (is_another()) {
    return {};
  }
  if (!there.condemned.empty()) {
    return fmt::format("{} was ended by the driver: {}", process_text(place), there.condemned);
  }
  if (there.lost && there.child) {
    static_cast<void>(there.child->end(options_.hosts.empty() ? kMoment : kMomentOfSsh));
  }
  if (const auto how = end()) {
    return fmt::format("{} {}", process_text(place), end_text(place, *how));
  }
  if (!there.lost) {
    return "";
  }
  return is_elsewhere()
             ? fmt::format(
                   "{} is out of reach after at most {} ms of silence: it has ended, or its host "
                   "or the way there is down",
                   process_text(place),
                   options_.silence.count())
             : fmt::format("{} is there and has been silent for {} ms",
                           process_text(place),
                           options_.silence.count());
}

void Fleet::refused(const std::string& why) {
  const std::scoped_lock lock(mutex_);
  refusal_ = why;
}

/// The first place where somebody is to come; -1: none.
int Fleet::free_place() const {
  const auto at = std::ranges::find_if(
      places_, [](const Place& place) { return place.awaited && !place.member; });
  return at == places_.end() ? -1 : static_cast<int>(at - places_.begin());
}

bool Fleet::joined(const Join& join, const WorkerHostActor& host) {
  {
    const std::scoped_lock lock(mutex_);
    const int wished = join.place < 0 ? free_place() : join.place;
    const auto place = static_cast<std::size_t>(wished);
    const bool waits =
        wished >= 0 && place < places_.size() && places_[place].awaited && !places_[place].member;
    if (!waits && options_.workers_come) {
      return false;  // FL-3
    }
    if (!waits || (join.incarnation >= 0 && places_[place].incarnation != join.incarnation)) {
      throw Error(Errc::ClusterMember,
                  fmt::format("nobody waits for a worker in place {} (incarnation {})",
                              join.place,
                              join.incarnation));
    }
    places_[place].member = FleetMember{.place = wished,
                                        .incarnation = places_[place].incarnation,
                                        .host = host,
                                        .port = join.port,
                                        .process = join.process,
                                        .host_name = join.host};
  }
  changed_.notify_all();
  return true;
}

void Fleet::link_broke(const std::string& key, const Error& why) {
  log(Level::Error, "worker process is ended", {{"key", key}, {"why", why.what()}});
  const std::scoped_lock lock(mutex_);
  for (Place& place : places_) {
    if (place.member && place.member->port.key == key) {
      place.condemned = why.what();
      end_process(place);
    }
  }
}

void Fleet::lost(const caf::actor_addr& host) {
  {
    const std::scoped_lock lock(mutex_);
    for (Place& place : places_) {
      if (place.member && place.member->host.address() == host) {
        place.lost = true;
      }
    }
  }
  changed_.notify_all();
}

}  // namespace stagecraft
