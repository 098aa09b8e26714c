#include "stagecraft/actors/remote/host/hosted_actor.h"

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <typeinfo>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/actors/executor/step/foreign_error.h"
#include "stagecraft/base/process/process_end.h"
#include "stagecraft/compiler/libtorch/thread_count.h"

namespace stagecraft {
namespace {

/// Returns the error of a method of this name. An Error of the method keeps its code and text.
Error error_of(const std::string& name, const std::exception_ptr& thrown) {
  Error error = foreign_error(thrown);
  if (error.code() == Errc::WorkerFailed) {
    try {
      std::rethrow_exception(thrown);
    } catch (const Error&) {  // NOLINT(bugprone-empty-catch): has a text that was made for it
    } catch (const std::exception& e) {
      error = Error(Errc::WorkerFailed,
                    fmt::format("{} threw {}: {}", name, detail::type_name(typeid(e)), e.what()));
    } catch (...) {
      error = Error(Errc::WorkerFailed, name + " threw something that is not a std::exception");
    }
  }
  return error.with({.task = name});
}

}  // namespace

struct HostedActor::State {
  State(std::shared_ptr<const ActorTypes> t, const ActorType& mine)
      : types(std::move(t)), type(mine) {}

  const std::shared_ptr<const ActorTypes> types;
  const ActorType& type;
  std::shared_ptr<void> object;  ///< written by the constructor's call, before any other begins
  std::optional<Error> broken;   ///< likewise: why there is no object

  std::mutex mutex;  ///< guards all below
  std::condition_variable changed;
  std::deque<HostedCall> calls;
  bool is_constructing = false;
  bool takes_more = true;

  /// Waits for a call. Returns false when there will be none.
  bool next(HostedCall& call) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [this] { return !is_constructing && (!calls.empty() || !takes_more); });
    if (calls.empty()) {
      return false;
    }
    call = std::move(calls.front());
    calls.pop_front();
    is_constructing = call.method == kConstruct;
    return true;
  }

  Payload result_of(const HostedCall& call) {
    std::vector<Payload> arguments;
    for (const Future<Payload>& argument : call.arguments) {
      const process_end::Elsewhere waiting;
      arguments.push_back(argument.get());
    }
    if (call.method == kConstruct) {
      object = type.make(arguments);
      return pack(std::monostate());
    }
    if (broken) {
      throw Error(*broken);
    }
    return type.methods[call.method].call(object.get(), arguments);
  }

  void run(const HostedCall& call) {
    const bool constructs = call.method == kConstruct;
    if (!constructs && call.outcome->future().ready()) {
      return;  // cancelled
    }
    try {
      call.outcome->set_value(result_of(call));
    } catch (...) {
      const Error error =
          error_of(constructs ? "the constructor of " + type.name : type.methods[call.method].name,
                   std::current_exception());
      if (constructs) {
        broken = error;
      }
      call.outcome->set_error(error);
    }
    if (constructs) {
      const std::scoped_lock lock(mutex);
      is_constructing = false;
      changed.notify_all();
    }
  }
};

HostedActor::HostedActor(std::shared_ptr<const ActorTypes> types,
                         const ActorType& type,
                         int concurrency)
    : state_(std::make_shared<State>(std::move(types), type)) {
  try {
    expect_threads();
    for (int i = 0; i < concurrency; ++i) {
      std::thread([state = state_]() mutable {
        set_own_thread_count(1);
        HostedCall call;
        while (state->next(call)) {
          const process_end::AtWork at_work;
          state->run(call);
          call = {};  // frees tensors at work
        }
        const process_end::AtWork at_work;  // the last thread destroys the user's object
        state.reset();
      }).detach();
    }
  } catch (const std::system_error&) {
    abandon(Error(Errc::Cancelled, "the actor was not started"));
    throw Error(
        Errc::DeviceOutOfMemory,
        fmt::format(
            "no thread can be started for an actor of {} with {} of them", type.name, concurrency));
  }
}

HostedActor::~HostedActor() {
  const std::scoped_lock lock(state_->mutex);
  state_->takes_more = false;
  state_->changed.notify_all();
}

void HostedActor::post(HostedCall call) {
  {
    const std::scoped_lock lock(state_->mutex);
    if (state_->takes_more) {
      state_->calls.push_back(std::move(call));
      state_->changed.notify_one();
      return;
    }
  }
  call.outcome->set_error(Error(Errc::WorkerLost, "the actor has ended"));
}

void HostedActor::abandon(const Error& why) {
  std::deque<HostedCall> dropped;
  {
    const std::scoped_lock lock(state_->mutex);
    dropped.swap(state_->calls);
    state_->takes_more = false;
    state_->changed.notify_all();
  }
  for (const HostedCall& call : dropped) {
    call.outcome->set_error(why);
  }
}

const ActorType& HostedActor::type() const {
  return state_->type;
}

}  // namespace stagecraft
