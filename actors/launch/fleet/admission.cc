#include "stagecraft/actors/launch/fleet/admission.h"

#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "stagecraft/actors/launch/fleet/fleet.h"
#include "stagecraft/base/files/whole_file.h"

namespace stagecraft {
namespace {

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
              if (!sender || !self->state.agreed.contains(sender->node())) {  // keeps HE-1
                throw Error(Errc::ClusterMember,
                            "a worker joins after it has said which build it is, and was answered "
                            "that this is the driver's: this one has not");
              }
              const auto host = caf::actor_cast<WorkerHostActor>(sender);
              self->monitor(host);
              if (const auto there = fleet.lock()) {
                joined.later = !there->joined(m, host);
              }
              if (!joined.later) {  // otherwise it asks again
                self->state.agreed.erase(sender->node());
              }
            } catch (const Error& error) {
              joined.error = to_chain(error);
            }
            return joined;
          },
          [self, fleet](const PeerCut& m) {
            const auto there = fleet.lock();
            if (const auto& sender = self->current_sender(); sender && there) {
              there->cut(sender->node(), m.key, to_error(m.why));
            }
          }};
}

}  // namespace

Admission::Admission(ActorHost& host,
                     const SpawnOptions& options,
                     const std::string& address,
                     std::weak_ptr<Fleet> fleet)
    : host_(host),
      actor_(host.system().spawn(admission, std::move(fleet))),
      port_(publish(host, actor_, address, options.port)),
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
