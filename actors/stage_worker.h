/// Stage worker: what stands behind one rank. Two actors share a desk:
///
///   plan thread   detached, with a thread of its own; owns the executor, inside it for whole steps
///   agent         scheduled; takes Abort, Status and EndWorker meanwhile
///
///   Idle --LoadPlan--> Loaded --TakeState--> Ready
///   Ready --StepOrder, SendState, TakeState--> Ready   failed or not
///   LoadVariant changes nothing of that, once there is a plan
///   Ready --WorkerLost: weights are undefined until replaced--> Failed --TakeState--> Ready
///
/// Made by a launcher (actors/launch/launcher.h), in the process in which the rank runs.
/// W-1: the executor is made, used and given up on the plan thread.
/// W-2: `answer` is the one place where an exception becomes an error value.
/// W-3: TakeState replaces the whole state or, failing, nothing. The first may leave out the
///      optimizer's, which is as before the first step in a rank that has just been loaded.
/// W-4: both are at work (base/process_end.h) while they may touch tensors: in messages that make,
///      move or drop some, and where the plan thread gives up what it holds.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stagecraft/actors/caf_types.h"
#include "stagecraft/actors/executor/stage_executor.h"
#include "stagecraft/actors/local_feed.h"
#include "stagecraft/futures/transport/transport.h"

namespace stagecraft {

/// What both actors of a rank may touch; everything in it may be used by any thread.
struct WorkerDesk {
  Rank rank;
  std::shared_ptr<Transport> transport;
  const std::shared_ptr<Progress> progress = std::make_shared<Progress>();
};

/// Where a rank's setup comes from, called once for each LoadPlan on the plan thread: in one
/// process it was handed over, to another one it travels (received_setup).
using SetupSource = std::function<RankSetup(const WorkerDesk&, const LoadPlan&)>;

/// Likewise for each LoadVariant.
using VariantSource = std::function<RankVariant(const WorkerDesk&, const LoadVariant&, PlanId)>;

/// A rank's stages for another shape, in another process than the driver's.
/// Errors: WireFormat; PlanInvalid; ClusterTimeout after the message's patience.
[[nodiscard]] RankVariant received_variant(const WorkerDesk& desk,
                                           const LoadVariant& m,
                                           PlanId plan);

/// What the plan thread does with each message, without the actor around it.
class StageWorker {
 public:
  StageWorker(std::shared_ptr<WorkerDesk> desk,
              SetupSource source,
              VariantSource variants = received_variant);
  ~StageWorker();
  StageWorker(const StageWorker&) = delete;
  StageWorker& operator=(const StageWorker&) = delete;

  Ready load(const LoadPlan& m);
  VariantLoaded load_variant(const LoadVariant& m);
  StepReport run(const StepOrder& m);
  StateListing send_state(const SendState& m);
  StateTaken take_state(const TakeState& m);

 private:
  enum class Phase : std::uint8_t { Idle, Loaded, Ready, Failed };

  template <class Reply, class Work>
  Reply answer(Reply reply, Work&& work);
  void check_phase(const char* message) const;
  /// Returns how many rows are on their way.
  std::int64_t send_timeline(const StepOrder& m);
  void take_named_state(const TakeState& m) const;
  [[nodiscard]] at::Tensor packed_copy(const TakeState& m) const;
  [[nodiscard]] Mirror& mirror() const;
  [[nodiscard]] std::vector<StateTensor> named_state(const std::vector<std::string>& names) const;
  [[nodiscard]] std::vector<at::Tensor> receive_state(const std::vector<StateTensor>& state,
                                                      const TakeState& m) const;

  const std::shared_ptr<WorkerDesk> desk_;
  const SetupSource source_;
  const VariantSource variants_;
  PlanId plan_;  ///< of the last LoadPlan, as is the next
  std::chrono::milliseconds state_deadline_{0};
  std::unique_ptr<StageExecutor> executor_;
  std::unique_ptr<LocalFeed> feed_;  ///< of its plan
  Phase phase_ = Phase::Idle;
};

/// Errors: DeviceOutOfMemory when no thread can be started for it.
[[nodiscard]] PlanActor spawn_plan_thread(ActorHost& host,
                                          std::shared_ptr<WorkerDesk> desk,
                                          SetupSource source,
                                          VariantSource variants = received_variant);
[[nodiscard]] AgentActor spawn_agent(ActorHost& host, std::shared_ptr<WorkerDesk> desk);

/// For messages.
[[nodiscard]] std::string agent_name(Rank rank);

/// The setup of a rank of another process than the driver's: waits for it on the data plane.
/// Errors: WireFormat; ClusterTimeout after the message's patience.
[[nodiscard]] RankSetup received_setup(const WorkerDesk& desk, const LoadPlan& m);

/// Asks agents, from a thread that is no actor, what their ranks are doing. In their order; nothing
/// for one that is gone or silent for longer than `limit`.
[[nodiscard]] std::vector<std::optional<StatusReply>> ask_status(
    ActorHost& host, const std::vector<AgentActor>& agents, std::chrono::milliseconds limit);

}  // namespace stagecraft
