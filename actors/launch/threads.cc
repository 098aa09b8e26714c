#include "stagecraft/actors/launch/threads.h"

#include <unistd.h>

#include <utility>

#include "stagecraft/actors/remote/host/rank_actors.h"
#include "stagecraft/futures/transport/inproc.h"

namespace stagecraft {
namespace {

class ThreadBinding final : public Binding {
 public:
  ThreadBinding(ActorHost& host, int ranks, std::shared_ptr<StepValues> values)
      : host_(host), network_(ranks), values_(std::move(values)) {}

  [[nodiscard]] std::shared_ptr<Transport> driver_end() const override {
    return network_.endpoint(kDriver);
  }
  [[nodiscard]] Worker launch(RankSetup setup) override {
    const Rank rank = setup.rank();
    Worker worker =
        launch_thread(host_, network_.endpoint(rank), values_, std::move(setup), shelf_);
    ends_[rank] = end_of_thread(worker);
    return worker;
  }
  void launch_actors(Rank rank,
                     Epoch generation,
                     std::shared_ptr<const ActorTypes> types) override {
    actors_[rank] = std::make_unique<RankActors>(
        network_.endpoint(rank), generation, std::move(types), values_);
    ends_[rank] = never_.future();
  }
  void hand_over(RankShape shape, PlanId, Submission request) override {
    shelf_->put(std::move(shape), request);
  }
  [[nodiscard]] bool was_replaced(Rank) const override { return false; }
  [[nodiscard]] Future<std::string> cause_of_end(Rank rank) const override {
    return ends_.at(rank);
  }

 private:
  ActorHost& host_;
  const InprocNetwork network_;
  const std::shared_ptr<StepValues> values_;
  const std::shared_ptr<Shelf> shelf_ = std::make_shared<Shelf>();
  const Promise<std::string> never_;  ///< the end of actors in this process
  std::map<Rank, Future<std::string>> ends_;
  std::map<Rank, std::unique_ptr<RankActors>> actors_;
};

}  // namespace

static Worker launch_thread(ActorHost& host,
                            Rank rank,
                            std::shared_ptr<Transport> end,
                            std::shared_ptr<StepValues> values,
                            SetupSource source,
                            ShapeSource shapes,
                            std::shared_ptr<LeftCopies> left = nullptr) {
  const auto context = std::make_shared<WorkerContext>();
  context->rank = rank;
  context->transport = std::move(end);
  context->values = std::move(values);
  context->left = std::move(left);
  // Make the plan thread first: its thread is the resource that may be missing.
  PlanActor plan_thread = spawn_plan_thread(host, context, std::move(source), std::move(shapes));
  return {.plan_thread = std::move(plan_thread), .agent = spawn_agent(host, context)};
}

Worker launch_thread(ActorHost& host,
                     Rank rank,
                     std::shared_ptr<Transport> end,
                     std::shared_ptr<StepValues> values,
                     SetupSource source,
                     std::shared_ptr<LeftCopies> left) {
  return launch_thread(host,
                       rank,
                       std::move(end),
                       std::move(values),
                       std::move(source),
                       received_shape,
                       std::move(left));
}

Worker launch_thread(ActorHost& host,
                     std::shared_ptr<Transport> end,
                     std::shared_ptr<StepValues> values,
                     RankSetup setup,
                     std::shared_ptr<Shelf> shelf) {
  const Rank rank = setup.rank();
  return launch_thread(
      host,
      rank,
      std::move(end),
      std::move(values),
      [given = std::move(setup)](const WorkerContext&, const LoadPlan&) { return given; },
      [from = std::move(shelf)](const WorkerContext& context, const LoadShape& m, PlanId) {
        return from->take(context.rank, m.request);
      });
}

Future<std::string> end_of_thread(const Worker& worker) {
  const auto end = std::make_shared<Promise<std::string>>();
  const auto ended = [end] { (void)end->set_value(""); };
  worker.plan_thread->attach_functor(ended);
  worker.agent->attach_functor(ended);
  return end->future();
}

void Shelf::put(RankShape shape, Submission request) {
  const std::scoped_lock lock(mutex_);
  const Rank rank = shape.rank;
  waiting_.insert_or_assign({rank, request}, std::move(shape));
}

RankShape Shelf::take(Rank rank, Submission request) {
  const std::scoped_lock lock(mutex_);
  auto found = waiting_.extract({rank, request});
  if (found.empty()) {
    throw Error(Errc::Internal, "a rank was told to take a shape that was not handed over");
  }
  return std::move(found.mapped());
}

std::unique_ptr<Binding> ThreadLauncher::bind(int ranks, LastRank) {
  return std::make_unique<ThreadBinding>(host(), ranks, values_);
}

WorkerPlace ThreadLauncher::place(Rank rank) const {
  return {
      .rank = rank, .process = getpid(), .address = {}, .processor = processor_of_this_process()};
}

void ThreadLauncher::replace(Rank rank) {
  throw Error(Errc::UsageArgument,
              peer_name(rank) +
                  " is a thread of this process and ends with it, so there is nothing to replace: "
                  "make a new trainer and load a checkpoint");
}

}  // namespace stagecraft
