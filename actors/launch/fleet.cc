#include "stagecraft/actors/launch/fleet.h"

#include <filesystem>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/actors/security/cluster_credentials.h"
#include "stagecraft/base/log.h"

namespace stagecraft {
namespace {

constexpr const char* kLoopback = "127.0.0.1";
/// Made with the credentials of a cluster; further ones when they are needed.
constexpr int kMembers = 4;
constexpr std::chrono::hours kMemberLife{24};
/// A process's exit is known to the system a moment later than its connections are closed.
constexpr std::chrono::milliseconds kMoment{100};

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
                there->joined(
                    {.place = m.place, .incarnation = m.incarnation, .host = host, .port = m.port});
              }
            } catch (const Error& error) {
              joined.error = to_chain(error);
            }
            return joined;
          }};
}

std::string member_folder(const std::string& credentials, int place) {
  return credentials + "/" + worker_name(place);
}

}  // namespace

Fleet::Fleet(const SpawnOptions& options)
    : options_(options),
      program_(find_worker_program(options.program)),
      made_(options.credentials.empty() ? std::make_unique<TemporaryCredentials>(kMembers)
                                        : nullptr),
      credentials_(made_ ? made_->dir() : options.credentials),
      host_(open_control_plane(load_credentials(credentials_ + "/driver"),
                               {.interval = options.heartbeat, .silence = options.silence})) {}

std::shared_ptr<Fleet> Fleet::open(const SpawnOptions& options) {
  std::shared_ptr<Fleet> fleet(new Fleet(options));
  fleet->port_ = DataPort::open(
      {.bind = fmt::format("tcp://{}:*", kLoopback),
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
}

void Fleet::require(int places) {
  {
    const std::scoped_lock lock(mutex_);
    if (!admission_) {
      admission_ = host_.system().spawn(admission, weak_from_this());
      listening_ = publish(host_, admission_, kLoopback);
    }
    places_.resize(std::max(places_.size(), static_cast<std::size_t>(places)));
  }
  for (int place = 0; place < places; ++place) {
    const std::scoped_lock lock(mutex_);
    if (places_[static_cast<std::size_t>(place)].child == nullptr) {
      start(place);
    }
  }
  for (int place = 0; place < places; ++place) {
    wait_for(place);
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
    old = std::move(there.child);
    if (there.member) {
      port_->forget(there.member->port);
    }
    there.member.reset();
    there.lost = false;
    there.condemned.clear();
    ++there.incarnation;
  }
  old.reset();  // gone before its successor comes
  {
    const std::scoped_lock lock(mutex_);
    start(place);
  }
  wait_for(place);
}

/// Requires: the mutex.
void Fleet::start(int place) {
  Place& there = places_[static_cast<std::size_t>(place)];
  const std::string folder = member_folder(credentials_, place);
  if (made_ && (there.incarnation > 0 || !std::filesystem::exists(folder))) {
    issue_member(credentials_, worker_name(place), kMemberLife);
    issue_member(credentials_, "driver", kMemberLife);  // both are looked at when one joins
  }
  std::vector<std::string> arguments = program_.arguments;
  for (std::string& word :
       worker_arguments({.host = kLoopback,
       .port = listening_,
       .credentials = folder,
       .place = place,
       .incarnation = there.incarnation,
       .lifeline = kLifeline,
       .bind = kLoopback,
       .heartbeat = {.interval = options_.heartbeat, .silence = options_.silence},
       .patience = options_.join_deadline})) {
    arguments.push_back(std::move(word));
  }
  there.child =
      std::make_unique<ChildProcess>(program_.path, arguments, [fleet = weak_from_this()] {
        if (const auto here = fleet.lock()) {
          const std::scoped_lock lock(here->mutex_);
          here->changed_.notify_all();
        }
      });
}

void Fleet::wait_for(int place) {
  const Deadline deadline = std::chrono::steady_clock::now() + options_.join_deadline;
  std::unique_lock lock(mutex_);
  const Place& there = places_[static_cast<std::size_t>(place)];
  const auto ended = [&] { return there.child->end(std::chrono::milliseconds(0)); };
  const bool settled =
      changed_.wait_until(lock, deadline, [&] { return there.member || ended().has_value(); });
  if (there.member) {
    return;
  }
  const std::string who = fmt::format("worker process {} ({})", there.child->id(), program_.path);
  const std::string why = refusal_.empty() ? "" : ": " + refusal_;
  if (settled) {
    throw Error(
        Errc::ClusterMember,
        fmt::format(
            "{} {} before it had joined{}; it has said why on standard error", who, *ended(), why));
  }
  throw Error(Errc::ClusterTimeout,
              fmt::format("{} has not joined within {} ms{}: is it a program that calls "
                          "worker_main?",
                          who,
                          options_.join_deadline.count(),
                          why));
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
  return {.process = there.child == nullptr ? 0 : there.child->id(),
          .incarnation = there.incarnation,
          .address = there.member ? there.member->port.endpoint : ""};
}

std::string Fleet::cause_of_end(int place, std::int64_t incarnation) const {
  std::unique_lock lock(mutex_);
  const Place& there = places_.at(static_cast<std::size_t>(place));
  if (there.incarnation != incarnation || there.child == nullptr) {
    return {};
  }
  const auto end = [&] { return there.child->end(std::chrono::milliseconds(0)); };
  // Others may have heard of it before this fleet has.
  changed_.wait_for(lock, kMoment, [&] {
    return there.incarnation != incarnation || there.lost || end().has_value();
  });
  if (there.incarnation != incarnation || there.child == nullptr) {
    return {};
  }
  const auto process = there.child->id();
  if (!there.condemned.empty()) {
    return fmt::format("process {} was ended by the driver: {}", process, there.condemned);
  }
  if (const auto how = there.child->end(there.lost ? kMoment : std::chrono::milliseconds(0))) {
    return fmt::format("process {} {}", process, *how);
  }
  return there.lost ? fmt::format("process {} is there and has been silent for {} ms",
                                  process,
                                  options_.silence.count())
                    : "";
}

void Fleet::refused(const std::string& why) {
  const std::scoped_lock lock(mutex_);
  refusal_ = why;
}

void Fleet::joined(FleetMember member) {
  {
    const std::scoped_lock lock(mutex_);
    const auto place = static_cast<std::size_t>(member.place);
    if (member.place < 0 || place >= places_.size() || places_[place].member ||
        places_[place].incarnation != member.incarnation) {
      throw Error(Errc::ClusterMember,
                  fmt::format("nobody waits for a worker in place {} (incarnation {})",
                              member.place,
                              member.incarnation));
    }
    places_[place].member = std::move(member);
  }
  changed_.notify_all();
}

void Fleet::link_broke(const std::string& key, const Error& why) {
  log(Level::Error, "worker process is ended", {{"key", key}, {"why", why.what()}});
  const std::scoped_lock lock(mutex_);
  for (Place& place : places_) {
    if (place.member && place.member->port.key == key) {
      place.condemned = why.what();
      place.child->kill();
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
