#include "stagecraft/actors/remote/host/rank_actors.h"

#include <exception>
#include <limits>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "stagecraft/actors/executor/step/foreign_error.h"
#include "stagecraft/actors/remote/host/hosted_actor.h"
#include "stagecraft/actors/remote/wire/delivery.h"
#include "stagecraft/actors/remote/wire/message_stream.h"
#include "stagecraft/actors/remote/wire/payload_transfer.h"
#include "stagecraft/actors/remote/wire/remote_tags.h"
#include "stagecraft/base/log.h"

namespace stagecraft {
namespace {

/// A value up to this size goes with the outcome: as long as it takes to ask for it.
constexpr std::size_t kSmallValue = 16 * 1024;

bool is_small(const Payload& value) {
  return value.tensors.empty() && value.bytes.size() <= kSmallValue;
}

/// Errors: Internal if there is no such value.
at::Tensor value_named(const StepValueName& name, const MadeValues& made) {
  const auto found = made.find(name);
  if (found == made.end()) {
    throw Error(Errc::Internal, "a step has not made a value that it was to leave");
  }
  return found->second;
}

}  // namespace

struct RankActors::State : std::enable_shared_from_this<RankActors::State> {
  struct Kept {
    Future<Payload> future;
    bool is_wanted = false;
    bool stays = false;  ///< the driver knows that there is one, and has not got it
  };
  /// Awaited is an argument of a call, on its way from another rank.
  struct Awaited {
    CallId call;
    Rank from;
    std::shared_ptr<Promise<Payload>> promise;
  };

  State(std::shared_ptr<Transport> e,
        Epoch g,
        std::shared_ptr<const ActorTypes> t,
        std::shared_ptr<StepValues> v)
      : end(std::move(e)),
        generation(g),
        driver(std::make_shared<MessageStream>(end, end->self(), generation)),
        types(std::move(t)),
        step_values(std::move(v)) {}

  const std::shared_ptr<Transport> end;
  const Epoch generation;
  const std::shared_ptr<MessageStream> driver;
  const std::shared_ptr<const ActorTypes> types;
  const std::shared_ptr<StepValues> step_values;

  std::mutex mutex;  ///< guards all below; futures complete and actors end after its release
  std::map<ActorId, std::shared_ptr<HostedActor>> actors;
  std::unordered_map<CallId, Kept> values;
  std::unordered_map<CallId, std::shared_ptr<Promise<Payload>>> open;  ///< calls without outcome
  std::map<DeliveryId, Awaited> awaited;
  std::map<Rank, RankLost> lost;
  bool is_closed = false;

  /// Sends the outcome, or why it cannot be sent. Nobody misses it after the close.
  void tell(const Outcome& outcome) {
    try {
      try {
        driver->send(outcome);
      } catch (...) {
        driver->send(Outcome{.call = outcome.call,
                             .error = chain_of(foreign_error(std::current_exception())),
                             .value = {}});
      }
    } catch (const std::exception& error) {
      log(Level::Debug, "an outcome was not sent", {{"why", error.what()}});
    }
  }

  /// Tells the driver that no more messages are taken, so that it waits for no outcome.
  void tell_end(const Error& why) {
    try {
      driver->send(StreamNotice{chain_of(why)});
    } catch (const std::exception& error) {
      log(Level::Debug, "the end of a rank's actors was not told", {{"why", error.what()}});
    }
  }

  [[nodiscard]] ErrorChain chain_of(Error error) const {
    return to_chain(error.with({.rank = end->self()}));
  }

  /// Registers a call. Its value is told when there is one.
  std::shared_ptr<Promise<Payload>> begin(CallId call) {
    auto promise = std::make_shared<Promise<Payload>>();
    const Future<Payload> future = promise->future();
    {
      const std::scoped_lock lock(mutex);
      values[call].future = future;
      open[call] = promise;
    }
    (void)future.on_ready([weak = weak_from_this(), call, future] {
      if (const auto self = weak.lock()) {
        self->finish(call, future);
      }
    });
    return promise;
  }

  void finish(CallId call, const Future<Payload>& future) {
    {
      const std::scoped_lock lock(mutex);
      open.erase(call);
    }
    Outcome outcome{.call = call, .error = {}, .value = {}};
    try {
      Payload value = future.get();
      const std::scoped_lock lock(mutex);
      const auto kept = values.find(call);
      if (kept != values.end() && !kept->second.is_wanted && !is_small(value)) {
        kept->second.stays = true;
      } else if (kept != values.end()) {
        outcome.value = std::move(value);
      }
    } catch (const Error& error) {
      outcome.error = chain_of(error);
    }
    tell(outcome);
  }

  void take(MakeActor& m) {
    const auto outcome = begin(m.call);
    auto arguments = arguments_of(m.call, m.arguments);
    try {
      const ActorType& type = types->find(m.type, m.methods);
      if (m.concurrency < 1 || m.arguments.size() != type.parameters) {
        throw Error(Errc::WireFormat, "a message that makes an actor has other numbers");
      }
      const auto actor = std::make_shared<HostedActor>(types, type, m.concurrency);
      actor->post({kConstruct, std::move(arguments), outcome});
      const std::scoped_lock lock(mutex);
      if (!is_closed) {
        actors[m.actor] = actor;
      }
    } catch (const Error& error) {
      outcome->set_error(error);
    }
  }

  void take(CallMethod& m) {
    const auto outcome = begin(m.call);
    auto arguments = arguments_of(m.call, m.arguments);
    try {
      const std::shared_ptr<HostedActor> actor = actor_of(m.actor);
      if (m.method >= actor->type().methods.size() ||
          m.arguments.size() != actor->type().methods[m.method].parameters) {
        throw Error(Errc::WireFormat, "a message that calls an actor has other numbers");
      }
      actor->post({m.method, std::move(arguments), outcome});
    } catch (const Error& error) {
      outcome->set_error(error);
    }
  }

  [[nodiscard]] std::shared_ptr<HostedActor> actor_of(ActorId id) {
    const std::scoped_lock lock(mutex);
    const auto found = actors.find(id);
    if (found == actors.end()) {
      throw Error(Errc::UsageArgument, "the actor has ended");
    }
    return found->second;
  }

  /// Never throws: an argument that cannot come is a failed future.
  std::vector<Future<Payload>> arguments_of(CallId call, std::vector<Argument>& arguments) {
    std::vector<Future<Payload>> futures;
    for (Argument& argument : arguments) {
      if (auto* here = std::get_if<Payload>(&argument)) {
        Promise<Payload> given;
        given.set_value(std::move(*here));
        futures.push_back(given.future());
      } else if (const auto* kept = std::get_if<KeptArgument>(&argument)) {
        futures.push_back(value_of(kept->value));
      } else {
        futures.push_back(awaited_argument(call, std::get<DeliveredArgument>(argument)));
      }
    }
    return futures;
  }

  [[nodiscard]] Future<Payload> value_of(CallId value) {
    const std::scoped_lock lock(mutex);
    const auto found = values.find(value);
    if (found != values.end()) {
      return found->second.future;
    }
    Promise<Payload> missing;
    missing.set_error(Error(Errc::Internal, "a value was released before it was passed"));
    return missing.future();
  }

  Future<Payload> awaited_argument(CallId call, const DeliveredArgument& argument) {
    const auto promise = std::make_shared<Promise<Payload>>();
    {
      const std::scoped_lock lock(mutex);
      const auto gone = lost.find(argument.from);
      if (gone != lost.end() && argument.delivery < gone->second.before) {
        promise->set_error(to_error(gone->second.why));  // nobody reads it yet
        return promise->future();
      }
      awaited[argument.delivery] = {call, argument.from, promise};
    }
    const Future<Payload> arriving = receive_payload(
        end, argument.from, delivery_tag(end->self(), generation, argument.delivery));
    (void)arriving.on_ready([weak = weak_from_this(), arriving, promise, id = argument.delivery] {
      try {
        auto delivered = unpack<Delivered>(arriving.get());
        if (delivered.error.empty()) {
          promise->set_value(std::move(delivered.value));
        } else {
          promise->set_error(to_error(delivered.error));
        }
      } catch (...) {
        promise->set_error(foreign_error(std::current_exception()));
      }
      if (const auto self = weak.lock()) {
        const std::scoped_lock lock(self->mutex);
        self->awaited.erase(id);
      }
    });
    return promise->future();
  }

  void take(WantValue& m) {
    Future<Payload> future;
    {
      const std::scoped_lock lock(mutex);
      const auto found = values.find(m.value);
      if (found == values.end()) {
        return;
      }
      found->second.is_wanted = true;
      if (!std::exchange(found->second.stays, false)) {
        return;
      }
      future = found->second.future;
    }
    tell({.call = m.value, .error = {}, .value = future.get()});
  }

  void take(TakeStepValues& m) {
    if (m.first.value < 1 || m.first.value > std::numeric_limits<std::int64_t>::max() -
                                                 static_cast<std::int64_t>(m.values.size())) {
      throw Error(Errc::WireFormat, "a message about a step's values has other numbers");
    }
    std::vector<std::shared_ptr<Promise<Payload>>> outcomes;
    for (std::size_t i = 0; i < m.values.size(); ++i) {
      outcomes.push_back(begin(CallId(m.first.value + static_cast<std::int64_t>(i))));
    }
    const Future<MadeValues> made = step_values->take({m.plan, end->self(), m.submission, m.task});
    (void)made.on_ready([made, outcomes, names = m.values] {
      MadeValues all;
      try {
        all = made.get();
      } catch (const Error& why) {
        for (const auto& outcome : outcomes) {
          outcome->set_error(why);
        }
        return;
      }
      for (std::size_t i = 0; i < names.size(); ++i) {
        try {
          outcomes[i]->set_value(pack(value_named(names[i], all)));
        } catch (...) {
          outcomes[i]->set_error(foreign_error(std::current_exception()));
        }
      }
    });
  }

  void take(ForwardValue& m) {
    const Future<Payload> future = value_of(m.value);
    (void)future.on_ready([weak = weak_from_this(), future, m] {
      const auto self = weak.lock();
      if (self == nullptr) {
        return;
      }
      Delivered delivered;
      try {
        delivered.value = future.get();
      } catch (const Error& error) {
        delivered.error = self->chain_of(error);
      }
      send_delivery(*self->end, m.to, m.generation, m.delivery, delivered);
    });
  }

  void take(ReleaseValues& m) {
    std::vector<Kept> released;  // tensors are freed without the lock
    const std::scoped_lock lock(mutex);
    for (const CallId value : m.values) {
      if (const auto found = values.find(value); found != values.end()) {
        released.push_back(std::move(found->second));
        values.erase(found);
      }
    }
  }

  void take(CancelCall& m) {
    std::shared_ptr<Promise<Payload>> outcome;
    {
      const std::scoped_lock lock(mutex);
      if (const auto found = open.find(m.call); found != open.end()) {
        outcome = found->second;
      }
    }
    if (outcome != nullptr) {
      const Error why =
          m.why.empty() ? Error(Errc::Cancelled, "the call was cancelled") : to_error(m.why);
      outcome->set_error(why);
      fail_awaited(why, [&](const Awaited& argument) { return argument.call == m.call; });
    }
  }

  void take(RankLost& m) {
    if (m.why.empty()) {
      throw Error(Errc::WireFormat, "a message about a lost rank has no cause");
    }
    {
      const std::scoped_lock lock(mutex);
      lost[m.rank] = m;
    }
    fail_awaited(to_error(m.why), [&](const Awaited& argument) { return argument.from == m.rank; });
  }

  void take(EndActor& m) {
    std::shared_ptr<HostedActor> ended;
    const std::scoped_lock lock(mutex);
    if (const auto found = actors.find(m.actor); found != actors.end()) {
      ended = std::move(found->second);
      actors.erase(found);
    }
  }

  void take(StreamNotice&) {}  // the stream keeps them
  void take(Outcome&) { throw Error(Errc::WireFormat, "the driver sent the outcome of a call"); }

  template <class Condition>
  void fail_awaited(const Error& why, const Condition& condition) {
    std::vector<std::shared_ptr<Promise<Payload>>> failed;
    {
      const std::scoped_lock lock(mutex);
      std::erase_if(awaited, [&](const auto& one) {
        const bool fails = condition(one.second);
        if (fails) {
          failed.push_back(one.second.promise);
        }
        return fails;
      });
    }
    for (const auto& promise : failed) {
      promise->set_error(why);
    }
  }

  void close(const Error& why) {
    std::map<ActorId, std::shared_ptr<HostedActor>> ended;
    {
      const std::scoped_lock lock(mutex);
      if (std::exchange(is_closed, true)) {
        return;
      }
      ended.swap(actors);
    }
    end->advance(plan_of_side(end->self()), Epoch(generation.value + 1), why);
    for (const auto& [id, actor] : ended) {
      actor->abandon(why);
    }
    fail_awaited(why, [](const Awaited&) { return true; });
  }
};

RankActors::RankActors(std::shared_ptr<Transport> end,
                       Epoch generation,
                       std::shared_ptr<const ActorTypes> types,
                       std::shared_ptr<StepValues> values)
    : state_(std::make_shared<State>(
          std::move(end), generation, std::move(types), std::move(values))) {
  // Drop what is on its way to a predecessor.
  state_->end->advance(plan_of_side(state_->end->self()),
                       generation,
                       Error(Errc::WorkerAborted, "another side of the rank has begun"));
  state_->driver->listen(
      [weak = std::weak_ptr<State>(state_)](RemoteMessage message) {
        if (const auto self = weak.lock()) {
          std::visit([&](auto& m) { self->take(m); }, message);
        }
      },
      [weak = std::weak_ptr<State>(state_)](const Error& why) {
        if (const auto self = weak.lock()) {
          if (why.code() != Errc::TransportClosed && why.code() != Errc::WorkerAborted) {
            log(Level::Error, "the actors of a rank end", {{"why", why.what()}});
            self->tell_end(why);
          }
          self->close(why);
        }
      });
}

RankActors::~RankActors() {
  state_->close(Error(Errc::WorkerLost, "the cluster of the actor has ended"));
}

}  // namespace stagecraft
