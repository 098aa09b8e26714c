/// Stage worker is the pair of actors of one rank. They share a context:
///
///   plan thread   detached, with a thread of its own; owns the executor, runs whole steps in it
///   agent         scheduled; handles Abort, Status and EndWorker meanwhile
///
///   Idle --LoadPlan--> Loaded --TakeState--> Ready
///   Ready --StepOrder, SendState, TakeState--> Ready   failed or not
///   Ready --WorkerLost: weights are undefined until replaced--> Failed --TakeState--> Ready
///   LoadShape changes no phase, once there is a plan
///
/// A launcher (actors/launch/launcher.h) makes it, in the process in which the rank runs.
/// W-1: the executor is made, used and given up on the plan thread.
/// W-2: `answer` is the one place where an exception becomes an error value.
/// W-3: TakeState replaces the whole state or, if it fails, nothing. The first one may leave out
///      the optimizer's state: in a rank that was just loaded, that is the one before the first
///      step; masters and averages begin as the weights.
/// W-4: both actors are marked busy (process_end.h) while they may touch tensors: in messages that
///      make, move or drop tensors, and where the plan thread drops its objects.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stagecraft/actors/executor/stage_executor.h"
#include "stagecraft/actors/messages/actor_host.h"
#include "stagecraft/actors/messages/state_request.h"
#include "stagecraft/actors/worker/local_feed.h"
#include "stagecraft/futures/transport/transport.h"

namespace stagecraft {

/// WorkerContext holds the parts that both actors of a rank share. Any thread may use any part of
/// it.
struct WorkerContext {
  Rank rank;
  std::shared_ptr<Transport> transport;
  const std::shared_ptr<Progress> progress = std::make_shared<Progress>();
  std::shared_ptr<StepValues> values = std::make_shared<StepValues>();  ///< for the rank's actors
  std::shared_ptr<LeftCopies> left = {};  ///< of a process that outlives its driver
};

/// SetupSource returns a rank's setup; called once for each LoadPlan on the plan thread. Within one
/// process the setup was handed over; to another process it travels (received_setup).
using SetupSource = std::function<RankSetup(const WorkerContext&, const LoadPlan&)>;

/// ShapeSource does the same for each LoadShape.
using ShapeSource = std::function<RankShape(const WorkerContext&, const LoadShape&, PlanId)>;

/// Receives a rank's stages for another shape, in a process other than the driver's.
/// Errors: WireFormat; PlanInvalid; ClusterTimeout after the message's patience.
[[nodiscard]] RankShape received_shape(const WorkerContext& context,
                                       const LoadShape& m,
                                       PlanId plan);

/// StageWorker handles each message of the plan thread, without the actor around it.
class StageWorker {
 public:
  StageWorker(std::shared_ptr<WorkerContext> context,
              SetupSource source,
              ShapeSource shapes = received_shape);
  ~StageWorker();
  StageWorker(const StageWorker&) = delete;
  StageWorker& operator=(const StageWorker&) = delete;

  Ready load(const LoadPlan& m);
  ShapeLoaded load_shape(const LoadShape& m);
  StepReport run(const StepOrder& m);
  StateListing send_state(const SendState& m);
  StateTaken take_state(const TakeState& m);

 private:
  enum class Phase : std::uint8_t { Idle, Loaded, Ready, Failed };

  template <class Reply, class Work>
  Reply answer(Reply reply, Work&& work);
  void check_phase(const char* message) const;
  /// Returns the number of rows that it sends.
  std::int64_t send_timeline(const StepOrder& m);
  [[nodiscard]] const std::vector<StateTensor>& committed_state();
  void take_named_state(const TakeState& m) const;
  [[nodiscard]] at::Tensor packed_copy(const TakeState& m) const;
  [[nodiscard]] Mirror& mirror() const;
  [[nodiscard]] std::vector<StateTensor> named_state(const std::vector<std::string>& names) const;
  [[nodiscard]] std::vector<at::Tensor> receive_state(const std::vector<StateTensor>& state,
                                                      const StateRequest& request) const;

  const std::shared_ptr<WorkerContext> context_;
  const SetupSource source_;
  const ShapeSource shapes_;
  PlanId plan_;  ///< of the last LoadPlan; so is the deadline
  std::chrono::milliseconds state_deadline_{0};
  std::unique_ptr<StageExecutor> executor_;
  std::vector<StateTensor> committed_;  ///< of the executor; empty: not listed since it changed
  std::unique_ptr<LocalFeed> feed_;     ///< of the same plan
  Phase phase_ = Phase::Idle;
  std::int64_t updates_ = 0;  ///< of the weights, while the phase is Ready
};

/// Starts the plan thread. Errors: DeviceOutOfMemory if no thread can be started for it.
[[nodiscard]] PlanActor spawn_plan_thread(ActorHost& host,
                                          std::shared_ptr<WorkerContext> context,
                                          SetupSource source,
                                          ShapeSource shapes = received_shape);
[[nodiscard]] AgentActor spawn_agent(ActorHost& host, std::shared_ptr<WorkerContext> context);

/// Returns the agent's name for messages.
[[nodiscard]] std::string agent_name(Rank rank);

/// Waits on the data plane for the setup of a rank of another process than the driver's.
/// Errors: WireFormat; ClusterTimeout after the message's patience.
[[nodiscard]] RankSetup received_setup(const WorkerContext& context, const LoadPlan& m);

/// Asks agents, from a thread that is no actor, for the activity of their ranks. Returns the
/// answers in the agents' order; nothing for an agent that is gone, or silent for longer than
/// `limit`.
[[nodiscard]] std::vector<std::optional<StatusReply>> ask_status(
    ActorHost& host, const std::vector<AgentActor>& agents, std::chrono::milliseconds limit);

}  // namespace stagecraft
