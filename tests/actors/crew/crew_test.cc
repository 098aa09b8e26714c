/// Tests how the waits of a crew end when a worker is lost. Its workers follow a script.
#include "stagecraft/actors/crew/crew.h"

#include <chrono>
#include <map>
#include <thread>

#include <ATen/ops/mean.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ones.h>
#include <fmt/format.h>

#include "stagecraft/actors/crew/worker_losses.h"
#include "stagecraft/actors/launch/launcher.h"
#include "stagecraft/actors/messages/data_tags.h"
#include "stagecraft/actors/worker/stage_worker.h"
#include "stagecraft/compiler/compile.h"
#include "stagecraft/futures/transport/inproc.h"
#include "stagecraft/tests/actors/driver/wait_plan.h"
#include "stagecraft/tests/futures/waiting.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

enum class Part {
  Answer,         ///< does all it is asked to do
  Announce,       ///< announces tensors, and ends instead of sending them
  EndWithPlan,    ///< ends with its plan, and takes no state
  KeepAndVanish,  ///< announces its copy, and ends instead of sending it
};

/// Waits for the rank's copy as a worker does: until the copy comes or the epoch is over.
StateTaken take_copy(const TakeState& m, PlanId plan, const WorkerContext& context) {
  StateTaken taken{.rank = context.rank};
  if (m.from != kDriver && m.from != context.rank) {
    const auto code =
        failure_of(context.transport->receive(m.from, state_tag(plan, m.request, 0, m.epoch)));
    taken.error = to_chain(Error(code.value_or(Errc::Internal), "the copy has not come"));
  }
  return taken;
}

struct PlayedWorker {
  PlanId plan;
};

PlanActor::behavior_type played(PlanActor::stateful_pointer<PlayedWorker> self,
                                const std::shared_ptr<WorkerContext>& context,
                                Part part) {
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
            StateListing listing{.rank = rank};
            if (m.tensors && m.kept < 0) {
              listing.names = {"weight:w", "weight:v"};
              if (part != Part::Announce) {
                for (std::size_t i = 0; i < 2; ++i) {
                  context->transport->send(
                      kDriver, state_tag(self->state.plan, m.request, i), number(rank.value));
                }
              }
            }
            end_if(part == Part::Announce || (part == Part::KeepAndVanish && m.kept >= 0));
            return listing;
          },
          [=](const TakeState& m) { return take_copy(m, self->state.plan, *context); },
          [=](const LoadVariant&) { return VariantLoaded{.rank = rank}; }};
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
    context->rank = setup.rank;
    context->transport = network_.endpoint(setup.rank);
    const auto part = parts_.find(setup.rank.value);
    return {.plan_thread = host_.system().spawn<caf::detached>(
                played, context, part == parts_.end() ? Part::Answer : part->second),
            .agent = spawn_agent(host_, context)};
  }
  void hand_over(RankShapeVariant, PlanId, Submission) override {}
  [[nodiscard]] bool was_replaced(Rank) const override { return false; }
  [[nodiscard]] std::string cause_of_end(Rank rank) const override {
    return fmt::format("process 4711 of rank {} was killed", rank.value);
  }

 private:
  ActorHost& host_;
  const InprocNetwork network_;
  const std::map<int, Part> parts_;
};

class PlayedLauncher final : public Launcher {
 public:
  explicit PlayedLauncher(std::map<int, Part> parts) : parts_(std::move(parts)) {}

  [[nodiscard]] ActorHost& host() const override { return ActorHost::of_this_process(); }
  void require_fit(const std::vector<RankSetup>&) const override {}
  [[nodiscard]] std::unique_ptr<Binding> bind(int ranks) override {
    return std::make_unique<PlayedBinding>(host(), ranks, parts_);
  }
  [[nodiscard]] WorkerPlace place(Rank rank) const override { return {.rank = rank}; }
  [[nodiscard]] PortCounts traffic() const override { return {}; }
  void replace(Rank) override {}

 private:
  const std::map<int, Part> parts_;
};

/// Holds three ranks without stages. Only the loss of a worker ends a wait of their crew.
struct Played {
  explicit Played(std::map<int, Part> parts)
      : launcher(std::move(parts)), crew(launcher, std::make_shared<StepLedger>(), job()) {}

  static Job job() {
    Workload workload;
    const at::Tensor w = at::ones({3}).set_requires_grad(true);
    workload.parameters = {{"w", w}};
    workload.forward = [w](const Tensors& x) { return Tensors{at::mul(w, x[0])}; };
    workload.loss = [](const Tensors& out, const Tensors&) { return at::mean(out[0]); };
    Job job;
    job.program = internal::compile_workload(workload,
                                             {.inputs = {at::ones({4, 3})},
                                              .labels = {at::ones({4, 3})},
                                              .loss = {},
                                              .microbatches = 2})
                      .shared();
    job.train = std::make_shared<const Plan>(wait_plan());
    job.options.state_deadline = std::chrono::hours(1);
    return job;
  }

  PlayedLauncher launcher;
  Crew crew;
};

template <class Work>
Error loss_in(Work&& work) {
  try {
    work();
  } catch (const Error& error) {
    return error;
  }
  FAIL("nothing has failed");
  return {Errc::Internal, ""};
}

void check_lost(const Error& error, int rank) {
  CHECK(error.code() == Errc::WorkerLost);
  CHECK(error.context().rank == Rank(rank));
  CHECK_THAT(error.what(),
             ContainsSubstring(fmt::format("rank {0} is lost: process 4711 of rank {0} was killed; "
                                           "to continue: cluster.replace(Rank({0})), then ",
                                           rank)));
}

TEST_CASE("a worker lost between announcing its state and sending it ends the wait (CR-3)",
          "[actors][crew][faults]") {
  Played p({{1, Part::Announce}});
  check_lost(loss_in([&] { (void)p.crew.read_state(); }), 1);
}

TEST_CASE("a worker that is lost cannot be asked, and the cause is said (CR-3)",
          "[actors][crew][faults]") {
  Played p({{2, Part::Announce}});
  check_lost(loss_in([&] { (void)p.crew.read_state(); }), 2);
  check_lost(loss_in([&] { (void)p.crew.list_state(); }), 2);
  check_lost(loss_in([&] { (void)p.crew.read_gradients(); }), 2);
}

TEST_CASE("a worker that is lost while its trainer is made is named with the cause (CR-3)",
          "[actors][crew][faults]") {
  const Error error = loss_in([] { const Played p({{0, Part::EndWithPlan}}); });
  check_lost(error, 0);
  CHECK_THAT(error.advice(), ContainsSubstring("then make the trainer again"));
}

TEST_CASE("a rank does not wait for a copy whose keeper is lost (CR-3)", "[actors][crew][faults]") {
  Played p({{1, Part::KeepAndVanish}});
  const RecoveryPoint point{.updates = 3, .lost = {true, false, false}};
  check_lost(loss_in([&] { p.crew.take_mirrors(point); }), 1);
}

TEST_CASE("a wait for a tensor ends with the loss of its sender alone (CR-3)",
          "[actors][crew][faults]") {
  Played p({{1, Part::Announce}});
  (void)loss_in([&] { (void)p.crew.read_state(); });
  const Promise<at::Tensor> never;
  check_lost(loss_in([&] { (void)p.crew.wait(Rank(1), never.future(), patience()); }), 1);
  CHECK_FALSE(p.crew.wait(Rank(0), never.future(), already_over()));
  Promise<at::Tensor> here;
  (void)here.set_value(number(7));
  CHECK(p.crew.wait(Rank(1), here.future(), patience()));  // arrived before the loss
}

TEST_CASE("a loss ends the waits for that worker, and not those for its successor",
          "[actors][crew][faults]") {
  ActorHost& host = ActorHost::of_this_process();
  const InprocNetwork network(1);
  const auto start = [&] {
    const auto context = std::make_shared<WorkerContext>();
    context->rank = Rank(0);
    context->transport = network.endpoint(Rank(0));
    return Worker{.plan_thread = host.system().spawn<caf::detached>(played, context, Part::Answer),
                  .agent = spawn_agent(host, context)};
  };
  const auto end = [&](const Worker& worker) {
    CHECK(host.end({caf::actor_cast<caf::actor>(worker.plan_thread),
                    caf::actor_cast<caf::actor>(worker.agent)},
                   patience()) == 0);
  };
  WorkerLosses losses(1);
  const Worker first = start(), second = start();
  losses.watch(Rank(0), first);
  const Promise<at::Tensor> never;
  WorkerLosses::Waited waited{};
  std::thread waiting([&] { waited = losses.wait(never.future(), {Rank(0)}, patience()); });
  end(first);
  waiting.join();
  CHECK(waited == WorkerLosses::Waited::Lost);

  losses.watch(Rank(0), second);
  CHECK_FALSE(losses.has(Rank(0)));
  CHECK(losses.wait(never.future(), {Rank(0)}, already_over()) == WorkerLosses::Waited::Late);
  end(second);
  CHECK(eventually([&] { return losses.has(Rank(0)); }));
}

}  // namespace
}  // namespace stagecraft
