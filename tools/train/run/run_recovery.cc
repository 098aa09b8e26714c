#include "stagecraft/tools/train/run/run_recovery.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "stagecraft/actors/cluster/environment_options.h"
#include "stagecraft/actors/driver/recovery_advice.h"
#include "stagecraft/actors/trainer/state/checkpoint.h"
#include "stagecraft/tools/train/report/error_for_user.h"
#include "stagecraft/tools/train/run/patient_start.h"

namespace stagecraft::tools {
namespace {

std::string_view name_of(Healed::From from) {
  switch (from) {
    case Healed::From::Mirrors:
      return "mirrors";
    case Healed::From::Copies:
      return "copies";
    case Healed::From::Checkpoint:
      return "checkpoint";
    case Healed::From::Start:
      return "start";
  }
  return "";
}

std::string on_host(const WorkerPlace& worker) {
  return worker.host.empty() ? "" : " on " + worker.host;
}

/// Returns " (moved from node-b)", if the rank is on another host than before.
std::string moved_text(const ReplacedWorker& worker) {
  return worker.lost.host.empty() || worker.lost.host == worker.now.host
             ? ""
             : fmt::format(" (moved from {})", worker.lost.host);
}

std::string workers_text(const std::vector<ReplacedWorker>& workers, const WorkerLogs& logs) {
  std::vector<std::string> each;
  for (const ReplacedWorker& worker : workers) {
    const std::string log = logs.file_of(worker.lost);
    each.push_back(fmt::format("rank {} is process {}{} now{}{}",
                               worker.now.rank.value,
                               worker.now.process,
                               on_host(worker.now),
                               moved_text(worker),
                               log.empty() ? "" : ", log of the lost one: " + log));
  }
  return workers.empty() ? "no worker was replaced" : fmt::format("{}", fmt::join(each, ", "));
}

std::string origin_text(const Healed& healed, std::int64_t after) {
  switch (healed.from) {
    case Healed::From::Mirrors:
      return fmt::format("goes on from mirrors after step {}", after);
    case Healed::From::Copies:
      return fmt::format("goes on from copies of the stages after step {}", after);
    case Healed::From::Checkpoint:
      return fmt::format("goes on from {} after step {}", healed.file, after);
    case Healed::From::Start:
      return "begins again";
  }
  return "";
}

std::string repeated_text(std::int64_t after, std::int64_t told) {
  if (after > told) {
    return fmt::format("; step {} was made, and its results are lost", after);
  }
  return after + 1 < told    ? fmt::format("; repeats steps {} to {}", after + 1, told)
         : after + 1 == told ? fmt::format("; repeats step {}", told)
                             : "; repeats no step";
}

/// Returns the ranks that are processes.
std::vector<Rank> replaceable(const std::vector<WorkerPlace>& workers) {
  std::vector<Rank> ranks;
  for (const WorkerPlace& worker : workers) {
    if (!worker.address.empty()) {
      ranks.push_back(worker.rank);
    }
  }
  return ranks;
}

/// Returns the error with `root` as the cause of its last cause.
Error with_root(Error error, const Error& root) {
  return error.because(error.cause() == nullptr ? root : with_root(*error.cause(), root));
}

}  // namespace

void load_checkpoint(Trainer& trainer, const CheckpointReader& file, const TrainOptions& options) {
  trainer.load(
      file, options.keeping.seed_from == SeedChoice::Option ? SeedFrom::Trainer : SeedFrom::Same);
}

bool recover_from_copies(Trainer& trainer) {
  try {
    (void)trainer.recover();
    return true;
  } catch (const Error& error) {
    if (error.code() != Errc::WorkerLost || error.context().rank) {
      throw;
    }
    return false;
  }
}

RunRecovery::RunRecovery(const TrainJob& job,
                         const Cluster& cluster,
                         const WorkerLogs& logs,
                         std::function<Trainer()> make_trainer)
    : job_(job),
      cluster_(cluster),
      logs_(logs),
      make_trainer_(std::move(make_trainer)),
      has_copies_(any_stage_has_copies(*job.execution.plan)),
      workers_(cluster.workers()),
      healing_({.restarts = job.options.workers.restarts,
                .window = std::chrono::duration<double>(job.options.workers.restart_window)},
               replaceable(workers_)) {}

Healed RunRecovery::heal(const Error& failure,
                         RunWork work,
                         std::optional<Trainer>& trainer,
                         RunCheckpoints& checkpoints,
                         const std::function<bool()>& ends) {
  const Clock::Time begun = clock_->now();
  Healed healed{.step = trainer->steps() + 1};
  healing_.admit(failure, healed.step, work);
  try {
    for (Error cause = failure;;) {
      healed.failures.push_back(error_for_user(cause, job_.options).message());
      replace(cause, ends, healed);  // its errors leave: keeps RR-2
      try {
        restore(trainer, checkpoints, healed);
        healed.seconds = std::chrono::duration<double>(clock_->now() - begun).count();
        return healed;
      } catch (const Error& another) {
        if (ends()) {
          throw;
        }
        healing_.admit(another, healed.step, std::nullopt);
        cause = another;
      }
    }
  } catch (const Error& last) {
    throw with_root(last, failure);  // keeps RR-3
  }
}

/// Returns the rank that the failure is about, and those whose workers have ended since.
std::vector<Rank> RunRecovery::lost_ranks(const Error& failure) const {
  const std::vector<WorkerPlace> now = cluster_.workers();
  std::vector<Rank> lost;
  for (std::size_t r = 0; r < static_cast<std::size_t>(job_.choice.layout.ranks()); ++r) {
    if (failure.context().rank == Rank(r) || now[r].lost) {
      lost.emplace_back(r);
    }
  }
  return lost;
}

void RunRecovery::replace(const Error& failure, const std::function<bool()>& ends, Healed& healed) {
  const auto patience = spawn_options_of_environment().join_deadline;
  const std::vector<WorkerPlace> before = cluster_.workers();
  for (const Rank rank : lost_ranks(failure)) {
    if (cluster_.workers()[rank.index()].incarnation != before[rank.index()].incarnation) {
      continue;  // it was replaced with another rank of its process
    }
    try {
      start_patiently([&] { cluster_.replace(rank); }, patience, ends, *clock_);
    } catch (Error& error) {
      throw error.with({.rank = rank});
    }
  }
  note_replaced(healed);
}

void RunRecovery::note_replaced(Healed& healed) {
  const std::vector<WorkerPlace> now = cluster_.workers();
  for (std::size_t r = 0; r < now.size(); ++r) {
    if (now[r].incarnation == workers_[r].incarnation) {
      continue;
    }
    const auto before = std::ranges::find_if(
        healed.workers, [&](const ReplacedWorker& w) { return w.now.rank == now[r].rank; });
    if (before == healed.workers.end()) {
      healed.workers.push_back({workers_[r], now[r]});
    } else {
      before->now = now[r];  // its first successor was lost too
    }
  }
  workers_ = now;
}

/// Keeps RR-1.
void RunRecovery::restore(std::optional<Trainer>& trainer,
                          RunCheckpoints& checkpoints,
                          Healed& healed) const {
  if (trainer && (job_.mirrors || has_copies_) && recover_from_copies(*trainer)) {
    healed.from = trainer->recovered_from_mirrors() ? Healed::From::Mirrors : Healed::From::Copies;
    return;
  }
  std::unique_ptr<CheckpointReader> file = checkpoints.newest();
  if (file == nullptr && job_.start.checkpoint) {
    file = std::make_unique<CheckpointReader>(*job_.start.checkpoint);
  }
  if (file == nullptr || !trainer) {
    trainer.reset();  // first: ranks do not hold two trainers
    trainer.emplace(make_trainer_());
  }
  healed.from = file == nullptr ? Healed::From::Start : Healed::From::Checkpoint;
  if (file != nullptr) {
    healed.file = file->path();
    load_checkpoint(*trainer, *file, job_.options);
  }
}

void RunRecovery::report(const Healed& healed,
                         std::int64_t after,
                         std::int64_t told,
                         Progress& progress) const {
  const std::int64_t most = job_.options.workers.restarts;
  nlohmann::ordered_json event{{"event", "restart"},
                               {"restarts", healing_.restarts()},
                               {"most", most},
                               {"step", healed.step},
                               {"failures", healed.failures},
                               {"workers", nlohmann::ordered_json::array()},
                               {"from", name_of(healed.from)},
                               {"after_step", after},
                               {"repeated_steps", std::max<std::int64_t>(told - after, 0)},
                               {"seconds", healed.seconds}};
  for (const ReplacedWorker& worker : healed.workers) {
    event["workers"].push_back({{"rank", worker.now.rank.value},
                                {"host", worker.lost.host},
                                {"process", worker.lost.process},
                                {"new_host", worker.now.host},
                                {"new_process", worker.now.process},
                                {"log", logs_.file_of(worker.lost)}});
    logs_.note(worker.lost, healed.step, healed.failures.front());
    logs_.note(worker.now,
               after + 1,
               fmt::format("is in the place of process {}, of which {} tells",
                           worker.lost.process,
                           logs_.file_of(worker.lost)));
  }
  if (healed.from == Healed::From::Checkpoint) {
    event["file"] = healed.file;
  }
  progress.note(fmt::format("restart {} of {}: {}; {}; {}{}; healed in {:.2f} s\n",
                            healing_.restarts(),
                            most,
                            fmt::join(healed.failures, "; then "),
                            workers_text(healed.workers, logs_),
                            origin_text(healed, after),
                            repeated_text(after, told),
                            healed.seconds),
                event);
}

}  // namespace stagecraft::tools
