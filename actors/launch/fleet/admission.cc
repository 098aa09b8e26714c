#include "stagecraft/actors/launch/fleet/admission.h"

#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "stagecraft/actors/launch/port/build_fingerprint.h"
#include "stagecraft/actors/launch/port/control_port.h"
#include "stagecraft/base/files/whole_file.h"

namespace stagecraft {
namespace {

struct AdmissionState {
  static inline const char* name = "admission";
  std::set<caf::node_id> agreed;  ///< processes whose Hello matched and that have not joined
};

using Self = AdmissionActor::stateful_pointer<AdmissionState>;

Welcome greet(Self self, const AdmissionEvents& events, const Hello& m) {
  Welcome welcome{.fingerprint = build_fingerprint(), .refusal = {}};
  welcome.refusal = refusal_of(m, welcome);
  if (!welcome.refusal.empty()) {
    events.refused(refusal_text(m, welcome));
  } else if (const auto& sender = self->current_sender()) {
    self->state.agreed.insert(sender->node());
  }
  return welcome;
}

Joined admit(Self self, const AdmissionEvents& events, const PeerNodes& nodes, const Join& m) {
  Joined joined;
  try {
    const auto& sender = self->current_sender();
    if (!sender || !self->state.agreed.contains(sender->node())) {  // keeps HE-1
      throw Error(Errc::ClusterMember,
                  "a worker may join after it has said which build it is and was answered that "
                  "the driver has the same: this one has not");
    }
    const std::string worker = nodes.worker_at(sender->node());  // keeps WA-1
    if (worker.empty()) {
      throw Error(Errc::ClusterMember, "the connection of this worker has ended: start it again");
    }
    const auto host = caf::actor_cast<WorkerHostActor>(sender);
    joined.later = !events.joins(m, host, worker);
    joined.taken = joined.later && events.is_taken(m, worker);
    if (!joined.later) {  // otherwise it asks again
      self->monitor(host);
      self->state.agreed.erase(sender->node());
    }
  } catch (const Error& error) {
    joined.error = to_chain(error);
  }
  return joined;
}

AdmissionActor::behavior_type admission(Self self,
                                        const AdmissionEvents& events,
                                        const std::shared_ptr<const PeerNodes>& nodes) {
  self->set_down_handler([events](const caf::down_msg& m) { events.disconnected(m.source); });
  return {[self, events](const Hello& m) { return greet(self, events, m); },
          [self, events, nodes](const Join& m) { return admit(self, events, *nodes, m); },
          [self, events](const PeerCut& m) {
            if (const auto& sender = self->current_sender()) {
              events.cut(sender->node(), m.key, to_error(m.why));
            }
          }};
}

}  // namespace

AdmissionActor spawn_admission(ActorHost& host,
                               AdmissionEvents events,
                               std::shared_ptr<const PeerNodes> nodes) {
  return host.system().spawn(admission, std::move(events), std::move(nodes));
}

Admission::Admission(ActorHost& host,
                     const SpawnOptions& options,
                     const std::string& address,
                     AdmissionEvents events)
    : host_(host),
      actor_(spawn_admission(host, std::move(events), nodes_)),
      port_(publish(host, actor_, nodes_, address, options.port)),
      file_(options.meeting_place.empty() ? "" : options.meeting_place + "/address") {}

Admission::~Admission() {
  unpublish(host_, actor_, port_);
  caf::anon_send_exit(actor_, caf::exit_reason::user_shutdown);
  if (!file_.empty()) {
    std::error_code ignored;  // not needed: the next fleet overwrites it
    std::filesystem::remove(file_, ignored);
  }
}

void Admission::tell(const std::string& where) {
  if (!file_.empty()) {
    WholeFile file(file_);
    file.write(where + "\n");
    file.publish();
  }
}

}  // namespace stagecraft
