/// Workers of a crew that follow a script: no plan, no stages, real actors and transports.
///
/// Tests of the crew and of its parts use them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "stagecraft/actors/launch/launcher.h"
#include "stagecraft/actors/messages/data_tags.h"
#include "stagecraft/actors/worker/stage_worker.h"
#include "stagecraft/futures/transport/inproc.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft {

/// Says what the worker of a rank does.
enum class Part {
  Answer,         ///< does all it is asked to do
  Announce,       ///< announces tensors, and ends instead of sending them
  Forget,         ///< announces tensors, and does not send them
  EndWithPlan,    ///< ends with its plan, and takes no state
  KeepAndVanish,  ///< announces its copy, and ends instead of sending it
};

/// Records what the workers were asked, by rank.
struct PlayedLog {
  std::mutex mutex;  // shared by their threads and the test
  std::map<int, std::vector<SendState>> sent;
  std::map<int, std::vector<TakeState>> taken;
};

/// Waits for the rank's copy as a worker does: until the copy comes or the epoch is over.
inline StateTaken take_copy(const TakeState& m, PlanId plan, const WorkerContext& context) {
  StateTaken taken{.rank = context.rank};
  if (m.from != kDriver && m.from != context.rank) {
    const auto code =
        failure_of(context.transport->receive(m.from, copy_tag(plan, m.request, m.epoch)));
    taken.error = to_chain(Error(code.value_or(Errc::Internal), "the copy has not come"));
  }
  return taken;
}

struct PlayedWorker {
  PlanId plan;
};

inline PlanActor::behavior_type played(PlanActor::stateful_pointer<PlayedWorker> self,
                                       const std::shared_ptr<WorkerContext>& context,
                                       Part part,
                                       const std::shared_ptr<PlayedLog>& log) {
  const Rank rank = context->rank;
  const auto end_if = [self](bool now) {
    if (now) {
      self->quit(caf::exit_reason::kill);
    }
  };
  return {[=](const LoadPlan& m) {
            self->state.plan = m.plan;
            end_if(part == Part::EndWithPlan);
            return Ready{.rank = rank};
          },
          [=](const StepOrder& m) {
            return StepReport{.rank = rank, .submission = m.submission, .committed = true};
          },
          [=](const SendState& m) {
            {
              const std::scoped_lock lock(log->mutex);
              log->sent[rank.value].push_back(m);
            }
            StateListing listing{.rank = rank};
            if (m.tensors && m.copy_of < 0) {
              listing.names = {"weight:w", "weight:v"};
              if (part != Part::Announce && part != Part::Forget) {
                for (std::size_t i = 0; i < 2; ++i) {
                  context->transport->send(kDriver,
                                           state_tag(self->state.plan, m.request, i),
                                           number(10 * rank.value + static_cast<std::int64_t>(i)));
                }
              }
            }
            end_if((part == Part::Announce && m.tensors) ||
                   (part == Part::KeepAndVanish && m.copy_of >= 0));
            return listing;
          },
          [=](const TakeState& m) {
            {
              const std::scoped_lock lock(log->mutex);
              log->taken[rank.value].push_back(m);
            }
            return take_copy(m, self->state.plan, *context);
          },
          [=](const LoadShape&) { return ShapeLoaded{.rank = rank}; }};
}

class PlayedBinding final : public Binding {
 public:
  PlayedBinding(ActorHost& host, int ranks, std::map<int, Part> parts)
      : host_(host), network_(ranks), parts_(std::move(parts)) {}

  [[nodiscard]] std::shared_ptr<Transport> driver_end() const override {
    return network_.endpoint(kDriver);
  }
  [[nodiscard]] Worker launch(RankSetup setup) override {
    const auto context = std::make_shared<WorkerContext>();
    context->rank = setup.rank();
    context->transport = network_.endpoint(setup.rank());
    const auto part = parts_.find(setup.rank().value);
    return {.plan_thread = host_.system().spawn<caf::detached>(
                played, context, part == parts_.end() ? Part::Answer : part->second, log),
            .agent = spawn_agent(host_, context)};
  }
  void hand_over(RankShape, PlanId, Submission) override {}
  void launch_actors(Rank, Epoch, std::shared_ptr<const ActorTypes>) override {}
  [[nodiscard]] bool was_replaced(Rank) const override { return false; }
  [[nodiscard]] Future<std::string> cause_of_end(Rank rank) const override {
    Promise<std::string>& cause = (*causes)[rank.value];
    if (!tells_late) {
      tell_cause(rank);
    }
    return cause.future();
  }

  /// Tells why the rank's worker ends, as a fleet does.
  void tell_cause(Rank rank) const {
    (void)(*causes)[rank.value].set_value("process 4711 of " + peer_name(rank) + " was killed");
  }

  bool tells_late = false;  ///< causes are told by the test
  const std::shared_ptr<PlayedLog> log = std::make_shared<PlayedLog>();

 private:
  ActorHost& host_;
  const InprocNetwork network_;
  const std::map<int, Part> parts_;
  const std::shared_ptr<std::map<int, Promise<std::string>>> causes =
      std::make_shared<std::map<int, Promise<std::string>>>();
};

class PlayedLauncher final : public Launcher {
 public:
  explicit PlayedLauncher(std::map<int, Part> parts) : parts_(std::move(parts)) {}

  [[nodiscard]] ActorHost& host() const override { return ActorHost::of_this_process(); }
  void require_fit(const std::vector<RankSetup>&, LastRank) const override {}
  [[nodiscard]] std::unique_ptr<Binding> bind(int ranks, LastRank) override {
    return std::make_unique<PlayedBinding>(host(), ranks, parts_);
  }
  [[nodiscard]] WorkerPlace place(Rank rank) const override { return {.rank = rank}; }
  [[nodiscard]] PortCounts traffic() const override { return {}; }
  void replace(Rank) override {}

 private:
  const std::map<int, Part> parts_;
};

}  // namespace stagecraft
