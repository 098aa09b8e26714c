#include "stagecraft/actors/remote/remote_actors.h"

#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/actors/driver/lost_workers.h"
#include "stagecraft/actors/launch/launcher.h"
#include "stagecraft/actors/remote/host/hosted_actor.h"
#include "stagecraft/actors/remote/wire/delivery.h"
#include "stagecraft/actors/remote/wire/message_stream.h"
#include "stagecraft/actors/remote/wire/remote_tags.h"
#include "stagecraft/base/log.h"
#include "stagecraft/base/process/process_end.h"
#include "stagecraft/futures/collective/job_thread.h"

namespace stagecraft {
namespace {

/// Releases of values that need little memory go together, so many.
constexpr std::size_t kReleasesTogether = 256;
constexpr int kMostThreads = 1024;
constexpr std::chrono::hours kLongestLimit{24 * 365};

Error loss(Rank rank, const std::string& cause) {
  return lost_worker(rank, cause, "make its actors again");
}

/// Sends a message about an actor or a value that ends with its rank anyway.
void send_quietly(MessageStream& stream, const RemoteMessage& message) {
  try {
    stream.send(message);
  } catch (const Error& error) {
    log(Level::Debug, "a message about an actor was not sent", {{"why", error.what()}});
  }
}

std::vector<std::string> names_of(const std::vector<ActorMethod>& methods) {
  std::vector<std::string> names;
  for (const ActorMethod& method : methods) {
    names.push_back(method.name);
  }
  return names;
}

}  // namespace

struct RemoteActors::State : std::enable_shared_from_this<RemoteActors::State> {
  /// RankSide is the rank's side of the actors, as it was started last.
  struct RankSide {
    Epoch generation{0};
    std::shared_ptr<MessageStream> stream;  ///< null: not started
    std::optional<Error> lost;
    std::vector<CallId> released;  ///< that the rank has not been told
  };
  struct Actor {
    Rank rank;
    Epoch generation;
    std::string type;
    std::vector<std::string> methods;
    int most_calls = 0;
    std::chrono::milliseconds limit;
    int under_way = 0;

    [[nodiscard]] std::string name_of(std::size_t method) const {
      return method == kConstruct ? "the constructor of " + type : methods[method];
    }
  };
  /// Pending is a call without an outcome, or a value that stays on its rank and was not read.
  struct Pending {
    std::shared_ptr<Actor> actor;
    std::size_t method = kConstruct;
    std::unique_ptr<Completion> completion;
    std::optional<Deadline> deadline;
    bool has_ended = false;
    bool is_wanted = false;
    bool is_released = false;
  };
  using Completions = std::vector<std::unique_ptr<Completion>>;

  State(std::shared_ptr<Launcher> l, int n, std::shared_ptr<const Clock> c)
      : launcher(std::move(l)), clock(std::move(c)), sides(static_cast<std::size_t>(n)) {}

  ~State() {
    if (here != nullptr) {
      here->close(Error(Errc::ClusterClosed, "the cluster has ended"));
    }
    if (continuations != nullptr) {
      // The last handle may go in a continuation, whose thread cannot wait for itself.
      std::thread([last = std::move(continuations)]() mutable { last.reset(); }).detach();
    }
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  const std::shared_ptr<Launcher> launcher;
  const std::shared_ptr<const Clock> clock;
  const std::shared_ptr<ActorTypes> types = std::make_shared<ActorTypes>();

  std::mutex starting;  ///< held while a rank's side starts, which waits for its process
  std::shared_ptr<Binding> binding;
  std::shared_ptr<Transport> here;

  std::mutex mutex;  ///< guards all below
  std::condition_variable ended;
  std::vector<RankSide> sides;
  std::map<ActorId, std::shared_ptr<Actor>> actors;
  std::unordered_map<CallId, Pending> pending;
  std::set<std::pair<Deadline, CallId>> deadlines;
  std::optional<Deadline> timer;  ///< when the next look at the deadlines comes
  std::int64_t last_actor = 0;
  std::int64_t last_call = 0;
  std::int64_t last_delivery = 0;

  std::unique_ptr<JobThread> continuations;  ///< null before the first one

  // ---- ranks --------------------------------------------------------------------------------

  void start(Rank rank) {
    const std::scoped_lock one_at_a_time(starting);
    if (binding == nullptr) {
      binding = launcher->bind(static_cast<int>(sides.size()), LastRank::LikeOthers);
      here = binding->driver_end();
    }
    RankSide& side = sides[rank.index()];
    Epoch generation;
    {
      const std::scoped_lock lock(mutex);
      if (side.stream != nullptr && !side.lost && !binding->was_replaced(rank)) {
        return;
      }
      generation = side.generation;
    }
    lose(rank, generation, "it was replaced");
    {
      const std::scoped_lock lock(mutex);
      // From here on nothing belongs to the side before, whatever becomes of the new one.
      generation = Epoch(side.generation.value + 1);
      side = {.generation = generation, .stream = {}, .lost = {}, .released = {}};
    }
    binding->launch_actors(rank, generation, types);
    const auto stream = std::make_shared<MessageStream>(here, rank, generation);
    {
      const std::scoped_lock lock(mutex);
      side.stream = stream;
    }
    const std::weak_ptr<State> weak = weak_from_this();
    stream->listen(
        [weak](RemoteMessage message) {
          if (const auto self = weak.lock()) {
            auto* outcome = std::get_if<Outcome>(&message);
            if (outcome == nullptr) {
              throw Error(Errc::WireFormat, "a rank sent a message of the driver");
            }
            self->take(*outcome);
          }
        },
        [weak, rank, generation](const Error& why) {
          if (const auto self = weak.lock()) {
            self->lose(rank, generation, why.message());
          }
        });
    const Future<std::string> cause = binding->cause_of_end(rank);
    (void)cause.on_ready([weak, rank, generation, cause] {
      if (const auto self = weak.lock()) {
        self->lose(rank, generation, cause.get());  // never fails (Binding::cause_of_end)
      }
    });
  }

  /// Keeps RA-1 for a rank.
  void lose(Rank rank, Epoch generation, const std::string& cause) {
    const Error why = loss(rank, cause);
    Completions failed;
    RankLost message{.rank = rank, .before = {}, .why = to_chain(why)};
    std::vector<std::shared_ptr<MessageStream>> others;
    {
      const std::scoped_lock lock(mutex);
      RankSide& side = sides[rank.index()];
      if (is_gone(rank, generation) || side.stream == nullptr) {
        return;
      }
      side.lost = why;
      message.before = DeliveryId(last_delivery + 1);
      for (const RankSide& other : sides) {
        if (other.stream != nullptr && !other.lost) {
          others.push_back(other.stream);
        }
      }
      for (auto one = pending.begin(); one != pending.end();) {
        const auto next = std::next(one);
        if (one->second.actor->rank == rank) {
          failed.push_back(remove(one));
        }
        one = next;
      }
      ended.notify_all();
    }
    here->advance(plan_of_side(rank), Epoch(generation.value + 1), why);
    for (const auto& completion : failed) {
      completion->error(why);
    }
    for (const auto& other : others) {
      send_quietly(*other, message);
    }
  }

  /// Returns whether the side that the rank had then has gone. Requires: the mutex is held.
  [[nodiscard]] bool is_gone(Rank rank, Epoch generation) const {
    const RankSide& side = sides[rank.index()];
    return side.lost || side.generation != generation;
  }

  /// Throws why the side that the rank had then has gone; returns if it has not.
  /// Requires: the mutex is held.
  void require_side(Rank rank, Epoch generation) const {
    const RankSide& side = sides[rank.index()];
    if (is_gone(rank, generation) || side.stream == nullptr) {
      throw Error(side.lost ? *side.lost : loss(rank, "it was replaced"));
    }
  }

  // ---- calls --------------------------------------------------------------------------------

  /// Takes a call out of the tables. Requires: the mutex is held.
  std::unique_ptr<Completion> remove(std::unordered_map<CallId, Pending>::iterator one) {
    Pending& call = one->second;
    end_of(one->first, call);
    std::unique_ptr<Completion> completion = std::move(call.completion);
    pending.erase(one);
    return completion;
  }

  /// Notes that the call runs no more. Requires: the mutex is held.
  void end_of(CallId id, Pending& call) {
    if (call.deadline) {
      deadlines.erase({*call.deadline, id});
      call.deadline.reset();
    }
    if (!std::exchange(call.has_ended, true)) {
      --call.actor->under_way;
      ended.notify_all();
    }
  }

  void take(Outcome& outcome) {
    std::unique_ptr<Completion> completion;
    {
      const std::scoped_lock lock(mutex);
      const auto found = pending.find(outcome.call);
      if (found == pending.end()) {
        return;  // too late, or nobody is left who wants it
      }
      if (outcome.error.empty() && !outcome.value) {
        end_of(found->first, found->second);
        if (found->second.is_released) {
          completion = remove(found);
        } else if (found->second.is_wanted) {
          set_deadline(found->first, found->second);  // of the wait for the value
        }
        return;
      }
      completion = remove(found);
    }
    if (outcome.error.empty()) {
      completion->value(*outcome.value);
    } else {
      completion->error(to_error(outcome.error));
    }
  }

  /// Fails a call of which its rank has not been told.
  void drop(CallId id, const Error& why) {
    std::unique_ptr<Completion> completion;
    {
      const std::scoped_lock lock(mutex);
      if (const auto found = pending.find(id); found != pending.end()) {
        completion = remove(found);
      }
    }
    if (completion != nullptr) {
      completion->error(why);
    }
  }

  /// Registers a call of `actor` and returns its number. Requires: the mutex is held.
  CallId add(std::shared_ptr<Actor> actor,
             std::size_t method,
             std::unique_ptr<Completion> completion) {
    const CallId id(++last_call);
    ++actor->under_way;
    Pending& call = pending[id];
    call = {.actor = std::move(actor),
            .method = method,
            .completion = std::move(completion),
            .deadline = {}};
    set_deadline(id, call);
    return id;
  }

  /// Requires: the mutex is held.
  void set_deadline(CallId id, Pending& call) {
    call.deadline = clock->now() + call.actor->limit;
    deadlines.insert({*call.deadline, id});
    set_timer();
  }

  /// Requires: the mutex is held.
  void set_timer() {
    if (deadlines.empty() || (timer && *timer <= deadlines.begin()->first)) {
      return;
    }
    timer = deadlines.begin()->first;
    const auto delay = std::chrono::ceil<std::chrono::milliseconds>(*timer - clock->now());
    call_later(launcher->host(),
               std::max(delay, std::chrono::milliseconds(0)),
               [weak = weak_from_this(), when = *timer] {
                 if (const auto self = weak.lock()) {
                   self->look_at_deadlines(when);
                 }
               });
  }

  void look_at_deadlines(Deadline when) {
    struct Late {
      CallId call;
      std::shared_ptr<MessageStream> stream;
      std::unique_ptr<Completion> completion;
      Error error;
    };
    std::vector<Late> late;
    {
      const std::scoped_lock lock(mutex);
      if (timer == when) {
        timer.reset();
      }
      while (!deadlines.empty() && deadlines.begin()->first <= clock->now()) {
        const auto found = pending.find(deadlines.begin()->second);
        const Actor& actor = *found->second.actor;
        Error error(Errc::ClusterTimeout,
                    fmt::format("{} on {} has not answered within {} ms",
                                actor.name_of(found->second.method),
                                peer_name(actor.rank),
                                actor.limit.count()));
        const CallId id = found->first;
        const auto stream = sides[actor.rank.index()].stream;
        late.push_back({id, stream, remove(found), std::move(error)});
      }
      set_timer();
    }
    for (const Late& one : late) {
      send_quietly(*one.stream, CancelCall{one.call});  // it may wait for an argument
      one.completion->error(one.error);
    }
  }

  void continue_with(std::function<void()> work) {
    const std::scoped_lock lock(mutex);
    if (continuations == nullptr) {
      continuations = std::make_unique<JobThread>();
    }
    continuations->post(std::move(work));
  }

  // ---- values -------------------------------------------------------------------------------

  void want(CallId id) {
    std::shared_ptr<MessageStream> stream;
    {
      const std::scoped_lock lock(mutex);
      const auto found = pending.find(id);
      if (found == pending.end() || std::exchange(found->second.is_wanted, true)) {
        return;
      }
      if (found->second.has_ended) {
        set_deadline(id, found->second);
      }
      stream = sides[found->second.actor->rank.index()].stream;
    }
    send_quietly(*stream, WantValue{id});
  }

  /// `why`: none: cancelled.
  void cancel(CallId id, const std::optional<Error>& why = std::nullopt) {
    std::shared_ptr<MessageStream> stream;
    {
      const std::scoped_lock lock(mutex);
      const auto found = pending.find(id);
      if (found == pending.end() || found->second.has_ended) {
        return;
      }
      stream = sides[found->second.actor->rank.index()].stream;
    }
    send_quietly(*stream, CancelCall{id, why ? to_chain(*why) : ErrorChain{}});
  }

  /// Frees a value whose last future has gone. One that takes little memory may wait for others.
  void release(CallId id, Rank rank, Epoch generation, bool is_small) {
    std::shared_ptr<MessageStream> stream;
    std::unique_ptr<Completion> unread;
    ReleaseValues message;
    {
      const std::scoped_lock lock(mutex);
      if (is_gone(rank, generation)) {
        return;
      }
      RankSide& side = sides[rank.index()];
      side.released.push_back(id);
      const auto found = pending.find(id);
      if (found != pending.end() && found->second.has_ended) {
        unread = remove(found);
      } else if (found != pending.end()) {
        found->second.is_released = true;
      }
      if (is_small && side.released.size() < kReleasesTogether) {
        return;
      }
      message.values.swap(side.released);
      stream = side.stream;
    }
    send_quietly(*stream, message);
  }
};

namespace {

/// RemoteOrigin is the place of a call's value.
class RemoteOrigin final : public FutureOrigin {
 public:
  RemoteOrigin(std::shared_ptr<RemoteActors::State> state,
               CallId call,
               Rank rank,
               Epoch generation,
               bool comes_unasked)
      : state_(std::move(state)),
        call_(call),
        rank_(rank),
        generation_(generation),
        comes_unasked_(comes_unasked) {}
  ~RemoteOrigin() override { state_->release(call_, rank_, generation_, comes_unasked_); }
  RemoteOrigin(const RemoteOrigin&) = delete;
  RemoteOrigin& operator=(const RemoteOrigin&) = delete;

  void wanted() override {
    if (!comes_unasked_) {
      state_->want(call_);
    }
  }
  void cancel() override { state_->cancel(call_); }
  void fail(const Error& why) { state_->cancel(call_, why); }
  void later(std::function<void()> work) override { state_->continue_with(std::move(work)); }

  [[nodiscard]] bool is_of(const RemoteActors::State& state) const {
    return state_.get() == &state;
  }
  [[nodiscard]] CallId call() const { return call_; }
  [[nodiscard]] Rank rank() const { return rank_; }
  [[nodiscard]] Epoch generation() const { return generation_; }

 private:
  const std::shared_ptr<RemoteActors::State> state_;
  const CallId call_;
  const Rank rank_;
  const Epoch generation_;
  const bool comes_unasked_;
};

/// Tells a thread that waits how its call ended.
class Answer final : public Completion {
 public:
  [[nodiscard]] Future<std::monostate> future() const { return promise_.future(); }
  void value(const Payload&) override { promise_.set_value({}); }
  void error(const Error& error) override { promise_.set_error(error); }

 private:
  Promise<std::monostate> promise_;
};

/// Passings are the messages that bring the arguments of a call to its rank.
struct Passings {
  struct FromRank {
    std::shared_ptr<MessageStream> owner;
    ForwardValue message;
  };
  struct FromDriver {
    DeliveryId delivery;
    GivenFuture given;
  };
  std::vector<FromRank> from_ranks;
  std::vector<FromDriver> from_driver;
};

/// Returns the arguments as they travel. Requires: the mutex of `state` is held, so no future goes
/// here: its end would want the mutex.
std::vector<Argument> arguments_for(RemoteActors::State& state,
                                    Rank rank,
                                    std::vector<GivenArgument>& given,
                                    Passings& passings) {
  std::vector<Argument> arguments;
  for (GivenArgument& one : given) {
    if (auto* payload = std::get_if<Payload>(&one)) {
      arguments.emplace_back(std::move(*payload));
      continue;
    }
    auto& future = std::get<GivenFuture>(one);
    const auto* origin = dynamic_cast<const RemoteOrigin*>(future.origin.get());
    if (origin == nullptr || !origin->is_of(state) ||
        state.is_gone(origin->rank(),
                      origin->generation())) {  // the driver may have read it before
      const DeliveryId delivery(++state.last_delivery);
      arguments.emplace_back(DeliveredArgument{kDriver, delivery});
      passings.from_driver.push_back({delivery, std::move(future)});
      continue;
    }
    if (origin->rank() == rank) {
      arguments.emplace_back(KeptArgument{origin->call()});
      continue;
    }
    const DeliveryId delivery(++state.last_delivery);
    arguments.emplace_back(DeliveredArgument{origin->rank(), delivery});
    passings.from_ranks.push_back({state.sides[origin->rank().index()].stream,
                                   {.value = origin->call(),
                                    .to = rank,
                                    .generation = state.sides[rank.index()].generation,
                                    .delivery = delivery}});
  }
  return arguments;
}

/// `generation`: of the rank's side when the call was made.
void start_passings(RemoteActors::State& state,
                    Rank rank,
                    Epoch generation,
                    const Passings& passings) {
  for (const Passings::FromRank& passing : passings.from_ranks) {
    passing.owner->send(passing.message);
  }
  for (const Passings::FromDriver& passing : passings.from_driver) {
    passing.given.read(
        [here = state.here, rank, generation, id = passing.delivery](const Delivered& delivered) {
          send_delivery(*here, rank, generation, id, delivered);
        });
  }
}

}  // namespace

RemoteActors::RemoteActors(std::shared_ptr<Launcher> launcher,
                           int ranks,
                           std::shared_ptr<const Clock> clock)
    : state_(std::make_shared<State>(std::move(launcher), ranks, std::move(clock))) {}

RemoteActors::~RemoteActors() = default;

ActorId RemoteActors::make(const On& on, ActorType type, std::vector<GivenArgument> arguments) {
  const Rank rank = on.rank();
  if (rank.value < 0 || rank.index() >= state_->sides.size()) {
    throw Error(Errc::UsageArgument,
                fmt::format("an actor runs on one of the ranks 0 to {}, not on {}",
                            state_->sides.size() - 1,
                            rank.value));
  }
  if (on.concurrency() < 1 || on.concurrency() > kMostThreads || on.most_calls() < 1 ||
      on.limit().count() < 1 || on.limit() > kLongestLimit) {
    throw Error(
        Errc::UsageArgument,
        fmt::format("an actor has 1 to {} threads, at least 1 call and a limit from 1 ms to "
                    "a year, not {}, {} and {} ms",
                    kMostThreads,
                    on.concurrency(),
                    on.most_calls(),
                    on.limit().count()));
  }
  const process_end::Elsewhere waiting;
  MakeActor message{.call = {},
                    .actor = {},
                    .type = type.name,
                    .methods = names_of(type.methods),
                    .concurrency = on.concurrency(),
                    .arguments = {}};
  const auto actor = std::make_shared<State::Actor>(State::Actor{.rank = rank,
                                                                 .generation = {},
                                                                 .type = type.name,
                                                                 .methods = message.methods,
                                                                 .most_calls = on.most_calls(),
                                                                 .limit = on.limit()});
  state_->types->add(std::move(type));
  state_->start(rank);
  auto answer = std::make_unique<Answer>();
  const Future<std::monostate> made = answer->future();
  Passings passings;
  std::shared_ptr<MessageStream> stream;
  Epoch generation;
  {
    const std::scoped_lock lock(state_->mutex);
    const State::RankSide& side = state_->sides[rank.index()];
    generation = actor->generation = side.generation;
    state_->require_side(rank, generation);
    stream = side.stream;
    message.arguments = arguments_for(*state_, rank, arguments, passings);
    message.actor = ActorId(++state_->last_actor);
    state_->actors.emplace(message.actor, actor);
    message.call = state_->add(actor, kConstruct, std::move(answer));
  }
  try {
    stream->send(message);
    start_passings(*state_, rank, generation, passings);
    (void)made.get();
    state_->release(message.call, rank, generation, /*is_small=*/true);
  } catch (const Error&) {
    end(message.actor);
    throw;
  }
  return message.actor;
}

std::shared_ptr<FutureOrigin> RemoteActors::call(ActorId actor_id,
                                                 std::size_t method,
                                                 std::vector<GivenArgument> arguments,
                                                 std::unique_ptr<Completion> completion,
                                                 bool comes_unasked) {
  CallMethod message{
      .call = {}, .actor = actor_id, .method = static_cast<std::uint32_t>(method), .arguments = {}};
  Passings passings;
  std::shared_ptr<MessageStream> stream;
  std::shared_ptr<FutureOrigin> origin;
  Rank rank;
  Epoch generation;
  const process_end::Elsewhere perhaps_waiting;  // around the lock: its end may park the thread
  {
    std::unique_lock lock(state_->mutex);
    const std::shared_ptr<State::Actor> actor = state_->actors.at(actor_id);
    rank = actor->rank;
    generation = actor->generation;
    if (actor->under_way >= actor->most_calls) {
      const bool has_room =
          state_->clock->wait_until(state_->ended, lock, state_->clock->now() + actor->limit, [&] {
            return actor->under_way < actor->most_calls || state_->is_gone(rank, generation);
          });
      if (!has_room) {
        throw Error(Errc::ClusterTimeout,
                    fmt::format("{} calls of {} on {} are under way, as many as may be, and none "
                                "has ended within {} ms",
                                actor->under_way,
                                actor->type,
                                peer_name(rank),
                                actor->limit.count()));
      }
    }
    state_->require_side(rank, generation);
    stream = state_->sides[rank.index()].stream;
    message.arguments = arguments_for(*state_, rank, arguments, passings);
    message.call = state_->add(actor, method, std::move(completion));
    origin = std::make_shared<RemoteOrigin>(state_, message.call, rank, generation, comes_unasked);
  }
  stream->send(message);
  start_passings(*state_, rank, generation, passings);
  return origin;
}

void RemoteActors::begin(Rank rank) {
  if (rank.value < 0 || rank.index() >= state_->sides.size()) {
    throw Error(Errc::UsageArgument, fmt::format("rank {} is none of this cluster", rank.value));
  }
  const process_end::Elsewhere waiting;
  state_->start(rank);
}

std::vector<std::shared_ptr<FutureOrigin>> RemoteActors::expect(
    const StepValues::Place& step,
    const std::vector<StepValueName>& values,
    std::vector<std::unique_ptr<Completion>> completions,
    std::chrono::milliseconds limit) {
  std::vector<std::shared_ptr<FutureOrigin>> origins(values.size());
  try {
    begin(step.rank);
    TakeStepValues message{.first = {},
                           .plan = step.plan,
                           .submission = step.submission,
                           .task = step.task,
                           .values = values};
    std::shared_ptr<MessageStream> stream;
    {
      const std::scoped_lock lock(state_->mutex);
      const State::RankSide& side = state_->sides[step.rank.index()];
      const Epoch generation = side.generation;
      state_->require_side(step.rank, generation);
      stream = side.stream;
      const auto maker = std::make_shared<State::Actor>(State::Actor{.rank = step.rank,
                                                                     .generation = generation,
                                                                     .type = "a step",
                                                                     .methods = {"a step's value"},
                                                                     .most_calls = 0,
                                                                     .limit = limit});
      for (std::size_t i = 0; i < values.size(); ++i) {
        const CallId id = state_->add(maker, 0, std::move(completions[i]));
        message.first = i == 0 ? id : message.first;
        origins[i] = std::make_shared<RemoteOrigin>(
            state_, id, step.rank, generation, /*comes_unasked=*/false);
      }
    }
    stream->send(message);
  } catch (const Error& why) {
    for (const auto& completion : completions) {
      if (completion != nullptr) {
        completion->error(why);
      }
    }
    for (const auto& origin : origins) {
      if (origin != nullptr) {
        state_->drop(dynamic_cast<RemoteOrigin&>(*origin).call(), why);
      }
    }
  }
  return origins;
}

void RemoteActors::fail_expected(const std::vector<std::shared_ptr<FutureOrigin>>& values,
                                 const Error& why) {
  for (const auto& value : values) {
    if (value != nullptr) {
      dynamic_cast<RemoteOrigin&>(*value).fail(why);
    }
  }
}

void RemoteActors::end(ActorId actor) {
  std::shared_ptr<MessageStream> stream;
  {
    const std::scoped_lock lock(state_->mutex);
    const auto found = state_->actors.find(actor);
    if (found == state_->actors.end()) {
      return;
    }
    const State::Actor& gone = *found->second;
    if (!state_->is_gone(gone.rank, gone.generation)) {
      stream = state_->sides[gone.rank.index()].stream;
    }
    state_->actors.erase(found);
  }
  if (stream != nullptr) {
    send_quietly(*stream, EndActor{actor});
  }
}

}  // namespace stagecraft
