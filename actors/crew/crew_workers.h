/// CrewWorkers holds the workers of a crew by rank. It asks them and finds out why one has ended.
///
/// A crew has one, on the thread of the trainer's caller. It sends a question at once, and the
/// answer is a future; gather() waits for all answers. Every wait keeps CR-3 (crew.h).
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stagecraft/actors/crew/ended_workers.h"
#include "stagecraft/actors/launch/launcher.h"
#include "stagecraft/actors/messages/actor_host.h"
#include "stagecraft/base/clock.h"
#include "stagecraft/base/process/process_end.h"

namespace stagecraft {

/// Asked is a question to one rank, with the future of its answer.
template <class Reply>
struct Asked {
  Rank rank;
  Future<Reply> answer;
};

class CrewWorkers {
 public:
  /// `patience`: longest wait for an answer.
  CrewWorkers(ActorHost& host,
              std::shared_ptr<Binding> binding,
              int ranks,
              std::chrono::milliseconds patience,
              std::shared_ptr<const Clock> clock);

  [[nodiscard]] int ranks() const { return static_cast<int>(workers_.size()); }
  [[nodiscard]] std::vector<Rank> all_ranks() const;
  /// Returns the workers by rank.
  [[nodiscard]] const std::vector<Worker>& all() const { return workers_; }
  /// Returns futures by rank: each completes when the worker has ended, with the cause
  /// (Binding::cause_of_end).
  [[nodiscard]] const std::vector<Future<std::string>>& causes() const { return causes_; }

  /// Starts the worker of the setup's rank; an earlier worker is told to quit.
  /// Errors: those of Binding::launch.
  void launch(RankSetup setup);

  /// Sets how a program continues after a loss, for later errors.
  void advise(std::string_view advice) { advice_ = advice; }

  template <class Reply, class Message>
  [[nodiscard]] Asked<Reply> ask_rank(Rank rank, Message message) const {
    return {rank,
            ask<Reply>(host_,
                       workers_[rank.index()].plan_thread,
                       "the worker of " + peer_name(rank),
                       patience_,
                       std::move(message))};
  }

  /// Returns the answers, in the order of the questions. Throws the first failure after all have
  /// answered. Errors: WorkerLost; ClusterTimeout; those of the ranks.
  template <class Reply>
  std::vector<Reply> gather(const std::vector<Asked<Reply>>& asked) const {
    const process_end::Elsewhere waiting;
    std::vector<Reply> replies;
    std::optional<Error> failure;
    for (const Asked<Reply>& one : asked) {
      try {
        replies.push_back(reply_of(one));
      } catch (Error& error) {
        error.with({.rank = one.rank});
        failure = failure ? failure : error;
      }
    }
    if (failure) {
      throw Error(*failure);
    }
    return replies;
  }

  /// Waits for the future. Returns false at the deadline. Errors: WorkerLost if the rank ends first
  /// (keeps CR-3).
  template <class T>
  [[nodiscard]] bool wait(Rank rank, const Future<T>& awaited, Deadline deadline) const {
    const EndedWorkers::Waited waited = ended_.wait(awaited, {rank}, deadline);
    if (waited == EndedWorkers::Waited::Lost) {
      throw loss_of(rank);
    }
    return waited == EndedWorkers::Waited::Complete;
  }

  /// Waits, without a deadline, until `awaited` is complete or the rank has ended. Returns whether
  /// it has ended first.
  template <class T>
  [[nodiscard]] bool ends_before(Rank rank, const Future<T>& awaited) const {
    return ended_.wait(awaited, {rank}, Deadline::max()) == EndedWorkers::Waited::Lost;
  }

  /// Returns an error with the cause of a worker's end and the way to continue. Waits for the
  /// cause, at most for kCauseLimit.
  [[nodiscard]] Error loss_of(Rank rank) const;

  /// Returns the deadline of a wait that begins now.
  [[nodiscard]] Deadline deadline() const { return clock_->now() + patience_; }

 private:
  template <class Reply>
  [[nodiscard]] Reply reply_of(const Asked<Reply>& asked) const {
    Reply reply;
    try {
      reply = asked.answer.get();
    } catch (const Error& error) {
      if (error.code() == Errc::ClusterMember) {
        throw loss_of(asked.rank);
      }
      throw;
    }
    if (!reply.error.empty()) {
      throw to_error(reply.error);
    }
    return reply;
  }

  ActorHost& host_;
  const std::shared_ptr<Binding> binding_;
  const std::chrono::milliseconds patience_;
  const std::shared_ptr<const Clock> clock_;
  std::vector<Worker> workers_;
  std::vector<Future<std::string>> causes_;
  EndedWorkers ended_;
  std::string advice_ = "make the trainer again";
};

}  // namespace stagecraft
