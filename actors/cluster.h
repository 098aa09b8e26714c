/// Cluster: the ranks a trainer may use.
///
/// Ranks are threads of this process, or worker processes of this host. A cluster may be given to
/// several trainers, at once or one after the other; each has workers and a data plane of its own.
/// It may be destroyed before its trainers, and be a static object.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "stagecraft/base/ids.h"

namespace stagecraft {

class Launcher;

/// How worker processes of this host are started and watched.
struct SpawnOptions {
  int ranks_per_process = 1;
  int local_ranks = 0;  ///< the first so many ranks are threads of this process
  /// What runs as a worker: a path; empty: the generic `stagecraft worker` (worker_main.h).
  std::string program;
  /// A folder made by `stagecraft credentials make`; empty: made for this cluster, gone with it.
  std::string credentials;
  /// A process that is idle says so every `heartbeat`; one that says nothing for `silence` is lost.
  std::chrono::milliseconds heartbeat{1000};
  std::chrono::milliseconds silence{5000};
  std::chrono::milliseconds join_deadline{std::chrono::seconds(60)};  ///< longest start of a worker
};

/// Who stands behind a rank.
struct WorkerPlace {
  Rank rank;
  std::int64_t process = 0;      ///< its id; 0 while none was needed yet
  std::int64_t incarnation = 0;  ///< how often it was replaced
  std::string address;           ///< where tensors reach it; empty for a thread of this process
};

class Cluster {
 public:
  // With these there is no move: one that was moved from is still a cluster.
  Cluster(const Cluster&) = default;
  Cluster& operator=(const Cluster&) = default;
  ~Cluster() = default;

  /// Errors: UsageArgument for less than one rank.
  [[nodiscard]] static Cluster local(int ranks);

  /// Worker processes of this host, started when a trainer first needs them. They end when the
  /// cluster and its trainers have, and when this process ends, however it does.
  /// Errors: UsageArgument for options that make no sense; UsageFile where no worker program or no
  ///         credentials are found; ClusterMember when no port can be opened for them.
  [[nodiscard]] static Cluster spawn(int ranks, const SpawnOptions& options = {});

  /// Takes its own options out of the program's arguments, each as `--option VALUE` or
  /// `--option=VALUE`:
  ///   --ranks N                    as many as the machine has processors unless said, at least 8:
  ///                                idle ranks cost nothing
  ///   --workers threads|processes  threads unless said
  ///   --credentials DIR            for processes
  /// What is not said there is looked for in the environment (from_env).
  /// Errors: UsageArgument for a value that makes no sense; those of spawn.
  [[nodiscard]] static Cluster from_args(int& argc, char** argv);

  /// As STAGECRAFT_RANKS, STAGECRAFT_WORKERS and STAGECRAFT_CREDENTIALS say.
  [[nodiscard]] static Cluster from_env();

  /// Ends the worker process of a rank, if it has not ended, and puts a new one in its place: then
  /// Trainer::load or Trainer::recover of its trainers goes on with it. Other ranks of the process
  /// are replaced with it.
  /// Errors: UsageArgument for a rank that is a thread, or none of this cluster; ClusterTimeout,
  ///         ClusterMember when the new worker does not come.
  void replace(Rank rank) const;

  /// By rank.
  [[nodiscard]] std::vector<WorkerPlace> workers() const;

  [[nodiscard]] int ranks() const { return ranks_; }
  /// Starts the workers of this cluster's trainers.
  [[nodiscard]] const std::shared_ptr<Launcher>& launcher() const { return launcher_; }

 private:
  Cluster(int ranks, std::shared_ptr<Launcher> launcher)
      : ranks_(ranks), launcher_(std::move(launcher)) {}

  int ranks_;
  std::shared_ptr<Launcher> launcher_;
};

}  // namespace stagecraft
