#include "stagecraft/actors/worker/stage_worker.h"

#include <iterator>
#include <system_error>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>

#include "stagecraft/actors/executor/mirror/packed_state.h"
#include "stagecraft/actors/executor/optimizer/state_names.h"
#include "stagecraft/actors/executor/setup/setup_wire.h"
#include "stagecraft/actors/executor/step/foreign_error.h"
#include "stagecraft/actors/messages/data_tags.h"
#include "stagecraft/actors/messages/state_listing.h"
#include "stagecraft/actors/messages/timeline_tensor.h"
#include "stagecraft/base/log.h"
#include "stagecraft/base/process/process_end.h"
#include "stagecraft/compiler/libtorch/lack_of_memory.h"

namespace stagecraft {
namespace {

[[nodiscard]] at::Tensor arrived(const WorkerContext& context,
                                 Rank from,
                                 const Future<at::Tensor>& arrival,
                                 std::chrono::milliseconds patience,
                                 std::string_view what,
                                 std::size_t index) {
  WaitBoard& waits = context.progress->waits;
  if (!waits.wait({{from, arrival}}, waits.clock().now() + patience)) {
    throw Error(Errc::ClusterTimeout,
                fmt::format("{} tensor {} was announced and has not arrived", what, index));
  }
  return arrival.get();
}

std::string_view text_of(const at::Tensor& bytes) {
  return {static_cast<const char*>(bytes.const_data_ptr()),
          static_cast<std::size_t>(bytes.nbytes())};
}

/// Receives the bytes from the driver, and the tensors to which they refer.
template <class TagOf>
std::pair<at::Tensor, std::vector<at::Tensor>> received(const WorkerContext& context,
                                                        const TagOf& tag_of,
                                                        std::int64_t patience_ms,
                                                        std::string_view what) {
  const auto receive = [&](std::size_t index) {
    return arrived(context,
                   kDriver,
                   context.transport->receive(kDriver, tag_of(index)),
                   std::chrono::milliseconds(patience_ms),
                   what,
                   index);
  };
  at::Tensor bytes = receive(0);
  std::vector<at::Tensor> tensors;
  for (std::size_t i = 0, count = tensor_count(text_of(bytes)); i < count; ++i) {
    tensors.push_back(receive(i + 1));
  }
  return {std::move(bytes), std::move(tensors)};
}

/// Holds the state of the plan thread's actor: made and destroyed on its own thread (W-1).
struct PlanThread {
  static inline const char* name = "plan thread";
  std::unique_ptr<StageWorker> worker;

  ~PlanThread() {
    const process_end::AtWork at_work;  // keeps W-4
    worker.reset();
  }
};

/// Lets the driver know why an actor ended that could not handle an exception: mostly, that memory
/// ran out where no step was to blame.
template <class Self>
void tell_failure(Self* self) {
  self->set_exception_handler([](std::exception_ptr& thrown) -> caf::error {
    return caf::make_error(caf::sec::runtime_error, std::string(foreign_error(thrown).what()));
  });
}

PlanActor::behavior_type plan_thread(PlanActor::stateful_pointer<PlanThread> self,
                                     const std::shared_ptr<WorkerContext>& context,
                                     const SetupSource& source,
                                     const ShapeSource& shapes) {
  tell_failure(self);
  self->state.worker = std::make_unique<StageWorker>(context, source, shapes);
  const auto worker = [self]() -> StageWorker& { return *self->state.worker; };
  return {[worker](const LoadPlan& m) { return worker().load(m); },
          [worker](const StepOrder& m) { return worker().run(m); },
          [worker](const SendState& m) { return worker().send_state(m); },
          [worker](const TakeState& m) { return worker().take_state(m); },
          [worker](const LoadShape& m) { return worker().load_shape(m); }};
}

StatusReply status_of(const WorkerContext& context, const Status& m) {
  const Progress& progress = *context.progress;
  StatusReply reply{.rank = context.rank,
                    .program = progress.program,
                    .instruction = progress.instruction,
                    .waiting_for = progress.waits.missing()};
  for (std::int32_t r = 0; r < m.ranks; ++r) {
    reply.routes.push_back(static_cast<std::int32_t>(context.transport->route_to(Rank(r))));
  }
  if (reply.instruction != Progress::kBetweenSteps) {
    const auto now = progress.waits.clock().now().time_since_epoch();
    reply.seconds =
        std::chrono::duration<double>(now - std::chrono::nanoseconds(progress.since_ns)).count();
  }
  return reply;
}

AgentActor::behavior_type agent(AgentActor::pointer self,
                                const std::shared_ptr<WorkerContext>& context) {
  tell_failure(self);
  return {[context](const Abort& m) {
            const process_end::AtWork at_work;  // drops tensors of the epoch
            context->transport->advance(m.plan, m.epoch, to_error(m.reason));
          },
          [context](const Status& m) { return status_of(*context, m); },
          [context](const EndWorker& m) {
            const process_end::AtWork at_work;  // drops tensors that wait
            context->transport->close(to_error(m.reason));
            return WorkerEnded{.rank = context->rank};
          }};
}

/// Returns the tensors at these positions; all if there are none.
std::vector<StateTensor> chosen(const std::vector<StateTensor>& state,
                                const std::vector<std::int32_t>& only) {
  if (only.empty()) {
    return state;
  }
  std::vector<StateTensor> result;
  for (const std::int32_t position : only) {
    if (position < 0 || position >= std::ssize(state)) {
      throw Error(Errc::Internal,
                  fmt::format("the state has {} tensors, and one at position {} was asked for",
                              state.size(),
                              position));
    }
    result.push_back(state[static_cast<std::size_t>(position)]);
  }
  return result;
}

}  // namespace

StageWorker::StageWorker(std::shared_ptr<WorkerContext> context,
                         SetupSource source,
                         ShapeSource shapes)
    : context_(std::move(context)), source_(std::move(source)), shapes_(std::move(shapes)) {}

StageWorker::~StageWorker() = default;

template <class Reply, class Work>
Reply StageWorker::answer(Reply reply, Work&& work) {
  const process_end::AtWork at_work;
  reply.rank = context_->rank;
  try {
    work(reply);
  } catch (...) {
    Error error = foreign_error(std::current_exception());
    if (error.code() == Errc::WorkerLost) {
      phase_ = Phase::Failed;
    }
    reply.error = to_chain(error.with({.rank = context_->rank}));
  }
  return reply;
}

Ready StageWorker::load(const LoadPlan& m) {
  return answer(Ready{.clock = read_clock()}, [&](Ready& ready) {
    if (m.rank != context_->rank) {
      throw Error(
          Errc::WorkerPhase,
          fmt::format("LoadPlan for {} came to {}", peer_name(m.rank), peer_name(context_->rank)));
    }
    RankSetup setup = source_(*context_, m);
    if (context_->left != nullptr) {
      context_->left->keep_only(m.joins ? "" : setup.options.run);
    }
    committed_.clear();
    plan_ = setup.plan_id;
    state_deadline_ = setup.options.state_deadline;
    feed_ = std::make_unique<LocalFeed>(setup);
    executor_ = std::make_unique<StageExecutor>(std::move(setup),
                                                context_->transport,
                                                context_->progress,
                                                context_->values,
                                                context_->left);
    phase_ = Phase::Loaded;
    ready.clock.nanoseconds = halfway(ready.clock.nanoseconds, read_clock().nanoseconds);
  });
}

ShapeLoaded StageWorker::load_shape(const LoadShape& m) {
  return answer(ShapeLoaded{}, [&](ShapeLoaded&) {
    if (phase_ == Phase::Idle) {
      check_phase("LoadShape");
    }
    committed_.clear();
    executor_->add_shape(shapes_(*context_, m, plan_));
  });
}

StepReport StageWorker::run(const StepOrder& m) {
  return answer(StepReport{.submission = m.submission}, [&](StepReport& report) {
    check_phase("StepOrder");
    committed_.clear();
    if (executor_->mirror() != nullptr) {
      mirror().note(m.step.value, m.facts);
    }
    LocalRead local;
    if (!m.local.source.empty()) {
      feed_->begin(m.local);
      local = [this](EdgeId edge, Microbatch microbatch) { return feed_->take(edge, microbatch); };
    }
    report = executor_->run(m, local);
    updates_ = report.committed ? m.step.value + 1 : updates_;
    report.timeline_rows = send_timeline(m);
  });
}

/// Does not fail if the timeline is lost: the step is done, weights may have changed.
std::int64_t StageWorker::send_timeline(const StepOrder& m) {
  try {
    const std::vector<InstructionTime> timeline = executor_->take_timeline();
    if (!timeline.empty()) {
      context_->transport->send(
          kDriver, timeline_tag(plan_, m.epoch, m.submission), pack_timeline(timeline));
    }
    return std::ssize(timeline);
  } catch (const std::exception& e) {
    log(Level::Warning,
        "timeline lost",
        {{"rank", context_->rank}, {"step", m.step.value + 1}, {"why", e.what()}});
    return 0;
  }
}

StateListing StageWorker::send_state(const SendState& m) {
  return answer(StateListing{}, [&](StateListing& listing) {
    if ((m.tensors && m.copy_of < 0) || phase_ == Phase::Idle) {
      check_phase("SendState");  // names, shapes and copies are valid even after a failed step
    }
    if (m.copy_of >= 0) {
      context_->transport->send(
          m.to, copy_tag(plan_, m.request, m.epoch), mirror().kept(m.copy_of));
      return;
    }
    listing.updates = phase_ == Phase::Ready ? updates_ : kNoWeights;
    if (executor_->mirror() != nullptr) {
      MirrorStock stock = executor_->mirror()->stock();
      listing.own = std::move(stock.own);
      listing.kept = std::move(stock.kept);
      listing.facts = executor_->mirror()->left_facts();
    }
    const at::NoGradGuard no_grad;
    const std::vector<StateTensor> state =
        m.gradients ? chosen(executor_->gradients(), m.only) : chosen(committed_state(), m.only);
    add_tensors(listing, state);
    for (std::size_t i = 0; m.tensors && i < state.size(); ++i) {
      // Send a copy: the next step writes to the living tensor.
      at::Tensor copy = state[i].tensor.detach().to(
          at::kCPU, /*non_blocking=*/false, /*copy=*/true, at::MemoryFormat::Contiguous);
      context_->transport->send(kDriver, state_tag(plan_, m.request, i), std::move(copy));
    }
  });
}

/// Lists the state once for all requests until a message may change it.
const std::vector<StateTensor>& StageWorker::committed_state() {
  if (committed_.empty()) {
    committed_ = executor_->committed_state();
  }
  return committed_;
}

StateTaken StageWorker::take_state(const TakeState& m) {
  return answer(StateTaken{}, [&](StateTaken&) {
    if (phase_ == Phase::Idle) {
      check_phase("TakeState");
    }
    committed_.clear();
    executor_->drop_accumulated();
    // If this fails, others may have the new state: the old one, of as many updates, is then no
    // copy of theirs (LV-1).
    updates_ = kNoWeights;
    if (m.announced) {
      if (executor_->mirror() != nullptr) {
        mirror().forget();
      }
      return;
    }
    if (m.from == kDriver) {
      take_named_state(m);
    } else {
      unpack(packed_copy(m), executor_->state());
    }
    phase_ = Phase::Ready;
    updates_ = m.updates;
    if (executor_->mirror() != nullptr) {
      mirror().restart(m.request,
                       m.updates,
                       m.from == kDriver ? std::nullopt : std::optional(m.kept),
                       executor_->state(),
                       m.facts);
    }
  });
}

void StageWorker::take_named_state(const TakeState& m) const {
  const StateRequest request(*context_->transport, plan_, m.request);
  std::vector<StateTensor> state = named_state(m.names);
  std::vector<at::Tensor> taken = receive_state(state, request);
  for (std::size_t i = 0; i < state.size(); ++i) {
    state[i].tensor = std::move(taken[i]);
  }
  executor_->load(state);
}

/// Returns the rank's own copy, or receives its keeper's.
at::Tensor StageWorker::packed_copy(const TakeState& m) const {
  return m.from == context_->rank
             ? mirror().own(m.updates)
             : arrived(*context_,
                       m.from,
                       context_->transport->receive(m.from, copy_tag(plan_, m.request, m.epoch)),
                       state_deadline_,
                       "state",
                       0);
}

Mirror& StageWorker::mirror() const {
  if (executor_->mirror() == nullptr) {
    throw Error(Errc::WorkerPhase,
                "this rank keeps no copies of states: set TrainerOptions::mirror");
  }
  return *executor_->mirror();
}

/// Returns this rank's tensors of these names. They must be all tensors, except those that W-3
/// allows to leave out.
std::vector<StateTensor> StageWorker::named_state(const std::vector<std::string>& names) const {
  std::vector<StateTensor> named;
  bool complete = true;
  for (StateTensor& state : executor_->state()) {
    if (named.size() < names.size() && state.name == names[named.size()]) {
      named.push_back(std::move(state));
    } else {
      complete = complete && phase_ == Phase::Loaded && is_of_optimizer(state.name);
    }
  }
  if (!complete || named.size() != names.size()) {
    throw Error(Errc::Internal,
                "the state sent is not this rank's: its names differ from SendState's listing");
  }
  return named;
}

/// Receives and checks everything before anything is written (keeps W-3).
std::vector<at::Tensor> StageWorker::receive_state(const std::vector<StateTensor>& state,
                                                   const StateRequest& request) const {
  std::vector<at::Tensor> taken;
  for (std::size_t i = 0; i < state.size(); ++i) {
    taken.push_back(
        arrived(*context_, kDriver, request.receive(kDriver, i), state_deadline_, "state", i));
    if (taken.back().sizes() != state[i].tensor.sizes() ||
        taken.back().scalar_type() != state[i].tensor.scalar_type()) {
      throw Error(Errc::Internal, state[i].name + " was sent in another shape or type than listed");
    }
  }
  return taken;
}

void StageWorker::check_phase(const char* message) const {
  if (phase_ == Phase::Ready) {
    return;
  }
  const auto is = [this] {
    switch (phase_) {
      case Phase::Idle:
        return "Idle: it has no plan yet";
      case Phase::Loaded:
        return "Loaded: its weights have not come yet";
      default:
        return "Failed: its state must be replaced first";
    }
  };
  throw Error(Errc::WorkerPhase,
              fmt::format("{} needs a rank that is Ready, this one is {}", message, is()));
}

PlanActor spawn_plan_thread(ActorHost& host,
                            std::shared_ptr<WorkerContext> context,
                            SetupSource source,
                            ShapeSource shapes) {
  if (host.is_simulated()) {
    return host.system().spawn(
        plan_thread, std::move(context), std::move(source), std::move(shapes));
  }
  try {
    return host.system().spawn<caf::detached>(
        plan_thread, std::move(context), std::move(source), std::move(shapes));
  } catch (const std::system_error& error) {
    const auto lack = lack_of_memory(
        error,
        "use fewer ranks, or raise what limits threads (ulimit -u) or addresses (ulimit -v)");
    throw Error(lack.value_or(Error(Errc::WorkerFailed, error.what())));
  }
}

AgentActor spawn_agent(ActorHost& host, std::shared_ptr<WorkerContext> context) {
  return host.system().spawn(agent, std::move(context));
}

RankSetup received_setup(const WorkerContext& context, const LoadPlan& m) {
  const auto [bytes, tensors] = received(
      context, [&](std::size_t index) { return setup_tag(m.plan, index); }, m.patience_ms, "setup");
  return decode_setup(text_of(bytes), tensors);
}

RankShape received_shape(const WorkerContext& context, const LoadShape& m, PlanId plan) {
  const auto [bytes, tensors] = received(
      context,
      [&](std::size_t index) { return shape_tag(plan, m.request, index); },
      m.patience_ms,
      "shape");
  return decode_shape(text_of(bytes), tensors);
}

std::string agent_name(Rank rank) {
  return "the agent of " + peer_name(rank);
}

std::vector<std::optional<StatusReply>> ask_status(ActorHost& host,
                                                   const std::vector<AgentActor>& agents,
                                                   std::chrono::milliseconds limit) {
  const Status question{.ranks = static_cast<std::int32_t>(agents.size())};
  std::vector<Future<StatusReply>> answers;
  for (std::size_t r = 0; r < agents.size(); ++r) {
    answers.push_back(ask<StatusReply>(host, agents[r], agent_name(Rank(r)), limit, question));
  }
  std::vector<std::optional<StatusReply>> replies;
  for (const Future<StatusReply>& answer : answers) {
    try {
      replies.emplace_back(answer.get());
    } catch (const Error& error) {
      log(Level::Warning, "status missing", {{"why", error.what()}});
      replies.emplace_back(std::nullopt);
    }
  }
  return replies;
}

}  // namespace stagecraft
