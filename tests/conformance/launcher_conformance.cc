#include "stagecraft/tests/conformance/launcher_conformance.h"

#include <unistd.h>

#include <array>
#include <csignal>
#include <fstream>
#include <memory>
#include <string>

#include "stagecraft/actors/messages/messages.h"
#include "stagecraft/actors/worker/stage_worker.h"
#include "stagecraft/base/clock.h"
#include "stagecraft/compiler/lower/lower.h"
#include "stagecraft/tests/integration/models.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft::tests {

void send_real_signal(std::int64_t process, int signal) {
  REQUIRE(kill(static_cast<pid_t>(process), signal) == 0);
}

bool is_really_alive(std::int64_t process) {
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string word; status >> word;) {
    if (word == "State:") {
      return status >> word && word != "Z" && word != "X";
    }
  }
  return false;
}

namespace {

using Catch::Matchers::ContainsSubstring;

constexpr int kRanks = 2;
constexpr std::chrono::seconds kPatience{60};

/// The workers of a crew, started and with their setups.
struct Crewed {
  Crewed(const MakeLauncher& make, const Job& work) : job(work), tested(make()), binding(bind()) {
    for (int r = 0; r < kRanks; ++r) {
      start(Rank(r));
    }
  }
  ~Crewed() { end(); }
  Crewed(const Crewed&) = delete;
  Crewed& operator=(const Crewed&) = delete;

  std::unique_ptr<Binding> bind() const {
    std::vector<RankSetup> setups;
    for (int r = 0; r < kRanks; ++r) {
      setups.push_back(rank_setup(job, Rank(r)));
    }
    tested.launcher->require_fit(setups, LastRank::LikeOthers);
    return tested.launcher->bind(kRanks, LastRank::LikeOthers);
  }

  /// Launches a rank. It gets its setup, and answers.
  void start(Rank rank) {
    Worker& worker = workers[rank.index()];
    worker = binding->launch(rank_setup(job, rank));
    const Ready ready =
        ask<Ready>(tested.launcher->host(),
                   worker.plan_thread,
                   "the worker",
                   kPatience,
                   LoadPlan{.rank = rank, .plan = job.plan_id, .patience_ms = 60'000})
            .get();
    CHECK(ready.rank == rank);
    CHECK(ready.error.empty());
    CHECK(ask_status(tested.launcher->host(), {worker.agent}, kPatience).front().has_value());
  }

  [[nodiscard]] WorkerPlace place(int rank) const { return tested.launcher->place(Rank(rank)); }

  /// Ends the crew and the cluster.
  void end() {
    std::vector<caf::actor> all;
    for (const Worker& worker : workers) {
      if (worker.agent) {
        all.push_back(caf::actor_cast<caf::actor>(worker.agent));
        all.push_back(caf::actor_cast<caf::actor>(worker.plan_thread));
      }
    }
    if (tested.launcher) {
      tested.launcher->host().end(all, kTestPatience);
    }
    workers.fill({});
    binding.reset();
    tested.launcher.reset();
  }

  const Job& job;
  LauncherUnderTest tested;
  std::unique_ptr<Binding> binding;
  std::array<Worker, kRanks> workers;
};

void starts_names_and_ends(const MakeLauncher& make, const Job& job) {
  Crewed crew(make, job);
  std::vector<std::int64_t> processes;
  for (int r = 0; r < kRanks; ++r) {
    const WorkerPlace place = crew.place(r);
    CHECK(place.rank == Rank(r));
    CHECK(place.incarnation == 0);
    CHECK_FALSE(place.processor.capability.empty());
    CHECK(place.address.empty() == !crew.tested.has_processes);
    CHECK((place.process == getpid()) == !crew.tested.has_processes);
    CHECK(crew.tested.is_alive(place.process));
    CHECK_FALSE(crew.binding->was_replaced(Rank(r)));
    CHECK_FALSE(crew.binding->cause_of_end(Rank(r)).ready());
    processes.push_back(place.process);
  }
  CHECK(crew.place(1).host == crew.tested.host);
  crew.end();
  if (crew.tested.has_processes) {
    for (const std::int64_t process : processes) {
      CHECK(eventually([&] { return !crew.tested.is_alive(process); }));
    }
  }
}

/// Returns a future that completes with the news that the worker is lost.
Future<bool> loss_of(const Worker& worker) {
  const auto lost = std::make_shared<Promise<bool>>();
  worker.plan_thread->attach_functor([lost] { lost->set_value(true); });
  return lost->future();
}

/// Requires that the loss of rank 1 is told, and then its cause.
void require_cause(const Crewed& crew, const Future<bool>& lost, const Future<std::string>& cause) {
  REQUIRE(lost.wait_until(patience()));
  const Clock::Time told = Clock::current()->now();
  REQUIRE(cause.wait_until(patience()));
  if (crew.tested.is_told_in_time) {
    const bool in_time = Clock::current()->now() - told < kCauseLimit;
    CHECK(in_time == crew.tested.is_told_in_time(1));
  }
}

/// Replaces the worker of rank 1, and requires that another process works in its place.
void require_successor(Crewed& crew) {
  const std::int64_t process = crew.place(1).process;
  if (crew.tested.bring) {
    crew.tested.bring(1);
  }
  crew.tested.launcher->replace(Rank(1));
  CHECK(crew.binding->was_replaced(Rank(1)));  // keeps BN-1
  CHECK_FALSE(crew.binding->was_replaced(Rank(0)));
  const WorkerPlace successor = crew.place(1);
  CHECK(successor.incarnation == 1);
  CHECK(successor.process != process);
  crew.start(Rank(1));
  CHECK_FALSE(crew.binding->was_replaced(Rank(1)));
  CHECK_FALSE(crew.binding->cause_of_end(Rank(1)).ready());
}

void tells_a_loss_with_its_cause(const MakeLauncher& make, const Job& job) {
  Crewed crew(make, job);
  const Future<std::string> cause = crew.binding->cause_of_end(Rank(1));
  const Future<std::string> other = crew.binding->cause_of_end(Rank(0));
  if (!crew.tested.has_processes) {
    caf::anon_send_exit(crew.workers[1].plan_thread, caf::exit_reason::kill);
    REQUIRE(cause.wait_until(patience()));
    CHECK(cause.get().empty());
    CHECK_FALSE(other.ready());
    return;
  }
  const std::int64_t process = crew.place(1).process;
  const Future<bool> lost = loss_of(crew.workers[1]);
  crew.tested.send_signal(process, SIGKILL);
  require_cause(crew, lost, cause);
  const std::string told = cause.get();
  const std::string& late = crew.tested.late_cause_of_kill;
  CHECK_THAT(told, ContainsSubstring("process " + std::to_string(process)));
  if (late.empty() || told.find(late) == std::string::npos) {
    CHECK_THAT(told, ContainsSubstring(crew.tested.cause_of_kill));
  }
  CHECK_FALSE(other.ready());
  CHECK_FALSE(crew.binding->was_replaced(Rank(1)));  // lost is not replaced
  require_successor(crew);
}

void gives_up_what_stands_still(const MakeLauncher& make, const Job& job) {
  Crewed crew(make, job);
  if (!crew.tested.gives_up_soon) {
    SUCCEED("a thread does not stand still alone, and other ways take as long as this one");
    return;
  }
  const Future<std::string> cause = crew.binding->cause_of_end(Rank(1));
  const Future<bool> lost = loss_of(crew.workers[1]);
  const std::int64_t process = crew.place(1).process;
  crew.tested.send_signal(process, SIGSTOP);
  require_cause(crew, lost, cause);
  CHECK_THAT(cause.get(), ContainsSubstring("process " + std::to_string(process)));
  require_successor(crew);
  CHECK(eventually([&] { return !crew.tested.is_alive(process); }));
}

void refuses_to_replace_what_has_no_process(const MakeLauncher& make, const Job& /*job*/) {
  const LauncherUnderTest tested = make();
  if (tested.starts_early) {
    SUCCEED("all ranks have processes");
    return;
  }
  CHECK(tested.launcher->place(Rank(0)).rank == Rank(0));
  CHECK(thrown_by([&] { tested.launcher->replace(Rank(0)); }) == Errc::UsageArgument);
}

}  // namespace

const std::vector<LauncherCase>& launcher_cases() {
  static const std::vector<LauncherCase> cases{
      {"ranks start with their setups, have places, and end", starts_names_and_ends},
      {"a lost worker is told with its cause, and another takes its place (BN-1)",
       tells_a_loss_with_its_cause},
      {"a worker that stands still is given up, and another takes its place (BN-1)",
       gives_up_what_stands_still},
      {"a rank that no crew has needed cannot be replaced", refuses_to_replace_what_has_no_process},
  };
  return cases;
}

const Job& job_of_two_ranks() {
  static const Job made = [] {
    const Program program = make_program({.stages = 2});
    const Schedule schedule = make_schedule("1f1b", program);
    Job job;
    job.program = program.shared();
    job.train = std::make_shared<const Plan>(
        lower_schedule(program, schedule, Layout::of(schedule), /*training=*/true));
    job.plan_id = PlanId(7);
    return job;
  }();
  return made;
}

}  // namespace stagecraft::tests
