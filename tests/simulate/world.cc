#include "stagecraft/tests/simulate/world.h"

#include <algorithm>
#include <exception>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <caf/execution_unit.hpp>
#include <caf/scheduled_actor.hpp>
#include <fmt/format.h>

namespace stagecraft::simulation {
namespace {

/// Gives the jobs that an actor makes back to the scheduler.
class Unit final : public caf::execution_unit {
 public:
  explicit Unit(caf::scheduler::test_coordinator& scheduler)
      : execution_unit(&scheduler.system()), scheduler_(scheduler) {}
  void exec_later(caf::resumable* job) override { scheduler_.jobs.push_back(job); }

 private:
  caf::scheduler::test_coordinator& scheduler_;
};

ActorHost& host_of_simulations() {
  static ActorHost& host = ActorHost::simulated();
  return host;
}

caf::scheduler::test_coordinator& scheduler_of(ActorHost& host) {
  return dynamic_cast<caf::scheduler::test_coordinator&>(host.system().scheduler());
}

const caf::scheduled_actor* actor_of(caf::resumable* job) {
  return dynamic_cast<const caf::scheduled_actor*>(job);
}

}  // namespace

World::World(std::uint64_t seed)
    : host_(host_of_simulations()),
      scheduler_(scheduler_of(host_)),
      strands_(dynamic_cast<caf::detail::test_actor_clock&>(scheduler_.clock())),
      random_(seed),
      begun_(clock().now()) {}

void World::at(Time when, Event event) {
  events_.emplace(std::pair(when, ++last_event_), std::move(event));
}

void World::at_count(std::int64_t count, Event event) {
  counted_.emplace(count, std::move(event));
}

void World::tell(const std::string& who, const std::string& what) {
  story_.tell(since_begin(), who, what);
}

void World::run(const std::function<void()>& program) {
  const ClockOfThread scope(strands_.clock_of(0));
  std::exception_ptr failure;
  bool has_ended = false;
  Strands::prepare(strands_.take(0), [&] {
    try {
      program();
    } catch (...) {
      failure = std::current_exception();
    }
    has_ended = true;
  });
  const auto is_over = [&] { return has_ended && plan_threads_.empty(); };
  try {
    while ((do_one() || (!is_over() && pass_time())) && since_begin() < kLongest) {
    }
  } catch (const std::exception& error) {  // of no strand: they would run on in what it leaves
    throw Standstill(fmt::format("the simulation has failed: {}", error.what()));
  }
  if (since_begin() >= kLongest) {
    throw Standstill("the run does not end");
  }
  if (!has_ended) {
    throw Standstill("the driver's program waits for something that cannot happen any more");
  }
  if (!plan_threads_.empty()) {
    throw Standstill("a worker is left that no longer has a driver");
  }
  scheduler_.clock().cancel_all();
  if (failure) {
    std::rethrow_exception(failure);
  }
}

bool World::can_run(caf::resumable* job) const {
  if (stopped_.empty()) {
    return true;
  }
  const caf::scheduled_actor* actor = actor_of(job);
  return actor == nullptr || !is_stopped(owner_of(actor->id()));
}

ProcessNumber World::owner_of(caf::actor_id actor) const {
  const auto owner = owners_.find(actor);
  return owner == owners_.end() ? 0 : owner->second;
}

bool World::can_run(const Strands::Strand& strand) const {
  return strands_.is_ready(strand) && !is_stopped(Strands::process_of(strand));
}

void World::own_since(caf::actor_id before, ProcessNumber process) {
  const caf::actor_id last = host_.system().latest_actor_id();
  for (caf::actor_id id = before + 1; process != 0 && id <= last; ++id) {
    owners_.emplace(id, process);
  }
}

void World::run_job(caf::resumable* job) {
  const auto resume = [this, job] {
    Unit unit(scheduler_);
    const auto result = job->resume(&unit, 1);
    if (result == caf::resumable::resume_later) {
      scheduler_.jobs.push_back(job);
    } else if (result != caf::resumable::shutdown_execution_unit) {
      caf::intrusive_ptr_release(job);
    }
    return result;
  };
  const caf::scheduled_actor* actor = actor_of(job);
  if (actor == nullptr) {
    resume();
    return;
  }
  if (std::string_view(actor->name()) != "plan thread") {
    as(owner_of(actor->id()), resume);
    return;
  }
  // A detached actor's thread may wait, and LibTorch keeps settings by thread.
  const caf::actor_id id = actor->id();
  Strands::Strand*& strand = plan_threads_[id];
  if (strand == nullptr) {
    strand = &strands_.take(owner_of(id));
  }
  Strands::prepare(*strand, [this, id, resume] {
    if (resume() == caf::resumable::done) {
      ended_.push_back(id);
    }
  });
  Strands::resume(*strand);
}

std::optional<std::size_t> World::choose() {
  const std::size_t jobs = scheduler_.jobs.size(), strands = strands_.count();
  const bool has_event = !events_.empty() && events_.begin()->first.first <= clock().now();
  std::vector<std::size_t>& left = candidates_;
  left.resize(jobs + strands + (has_event ? 1 : 0));
  std::iota(left.begin(), left.end(), 0);
  // The first in a drawn order that can happen is as likely as any other, and most need no test.
  while (!left.empty()) {
    std::size_t& drawn = left[random_.below(left.size())];
    if (drawn < jobs ? can_run(scheduler_.jobs[drawn])
                     : drawn >= jobs + strands || can_run(strands_.at(drawn - jobs))) {
      return drawn;
    }
    drawn = left.back();
    left.pop_back();
  }
  return std::nullopt;
}

bool World::do_one() {
  for (const caf::actor_id id : std::exchange(ended_, {})) {
    Strands::give_back(*plan_threads_.extract(id).mapped());
  }
  const std::optional<std::size_t> choice = choose();
  if (!choice) {
    return false;
  }
  const std::size_t jobs = scheduler_.jobs.size(), strands = strands_.count();
  if (random_.one_in(4)) {
    pass(random_.up_to(std::chrono::microseconds(100)));  // may add jobs, after these
  }
  if (*choice < jobs) {
    const auto at = scheduler_.jobs.begin() + static_cast<std::ptrdiff_t>(*choice);
    caf::resumable* job = *at;
    scheduler_.jobs.erase(at);
    run_job(job);
  } else if (*choice < jobs + strands) {
    Strands::resume(strands_.at(*choice - jobs));
  } else {
    const Event event = std::move(events_.begin()->second);
    events_.erase(events_.begin());
    event();
  }
  ++count_;
  while (!counted_.empty() && counted_.begin()->first <= count_) {
    const Event event = std::move(counted_.begin()->second);
    counted_.erase(counted_.begin());
    event();
  }
  return true;
}

bool World::pass_time() {
  std::optional<Time> next =
      strands_.next_deadline([this](ProcessNumber process) { return !is_stopped(process); });
  const auto sooner = [&next](Time when) { next = next ? std::min(*next, when) : when; };
  if (!events_.empty()) {
    sooner(events_.begin()->first.first);
  }
  auto& time = dynamic_cast<caf::detail::test_actor_clock&>(scheduler_.clock());
  if (time.has_pending_timeout()) {
    sooner(time.schedule().begin()->first);
  }
  if (!next) {
    return false;
  }
  pass(std::max(*next - clock().now(), Time::duration(1)));
  return true;
}

void World::pass(Time::duration span) {
  dynamic_cast<caf::detail::test_actor_clock&>(scheduler_.clock()).advance_time(span);
}

}  // namespace stagecraft::simulation
