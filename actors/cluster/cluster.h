/// Cluster: the ranks a trainer may use.
///
/// Ranks are threads of this process, or worker processes on this host or on others. Several
/// trainers may use a cluster, at once or one after the other; each has its own workers and its own
/// data plane. A cluster may be destroyed before its trainers, and may be a static object.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "stagecraft/actors/executor/device/processor.h"
#include "stagecraft/actors/launch/network/hosts.h"
#include "stagecraft/base/ids.h"

namespace stagecraft {

class Launcher;

/// With which code of ATen, MKL and oneDNN the processes of a cluster compute.
enum class ProcessorChoice {
  Own,     ///< each with the widest that its host has: other kinds of hosts give other bits
  Common,  ///< all, this process too, with the widest that every host has
};

/// How worker processes are started and watched.
struct SpawnOptions {
  int ranks_per_process = 1;
  int local_ranks = 0;  ///< the first `local_ranks` ranks are threads of this process
  /// Path of the worker program. Empty: the generic `stagecraft worker` (worker_main.h).
  std::string program;
  /// A folder made by `stagecraft credentials make`. Empty: made for this cluster, and removed with
  /// it.
  std::string credentials;
  /// Hosts of the workers, filled one after the other. Empty: this host. Each host needs the same
  /// build, and must be reachable by ssh without a question.
  std::vector<Host> hosts;
  std::vector<std::string> ssh;  ///< program that reaches the hosts, and its options; empty: "ssh"
  /// Start no workers: they come by themselves (`stagecraft worker --join`), from anywhere.
  bool workers_come = false;
  int workers_coming = -1;  ///< how many will come; -1: unknown
  /// Where workers reach this process: one of its interfaces, or one of its addresses. Empty: the
  /// address from which it reaches the first other host, or loopback if there is none.
  std::string interface;
  std::uint16_t port = 0;  ///< where workers join; 0: any free port
  /// A folder that all hosts see. Workers that come find there whom to join: the file `address`,
  /// written once they can join, and their credentials unless `credentials` names others. Both go
  /// with the cluster.
  std::string meeting_place;
  std::string log_dir;  ///< gets one file per worker with its output; empty: none
  /// With Common, workers start with the cluster. Make it before this process computes.
  ProcessorChoice processor = ProcessorChoice::Own;
  /// Called with lines for people: where workers of other hosts join, to which processors each one
  /// that came is bound, and which are missing while the cluster waits for them. Called on any
  /// thread; must not block.
  std::function<void(const std::string& line)> tell;
  /// An idle process sends a sign of life every `heartbeat`. One that sends nothing for `silence`
  /// is lost.
  std::chrono::milliseconds heartbeat{1000};
  std::chrono::milliseconds silence{5000};
  std::chrono::milliseconds join_deadline{std::chrono::seconds(60)};  ///< longest start of a worker
};

/// Returns the options that these variables of the environment set. Each is optional:
///   STAGECRAFT_WORKERS        "joining": workers_come
///   STAGECRAFT_WORKERS_COMING how many
///   STAGECRAFT_CREDENTIALS    a folder
///   STAGECRAFT_HOSTS          a file of hosts, each with STAGECRAFT_PER_HOST slots if that is set
///   STAGECRAFT_SSH            the program that reaches them, and its options
///   STAGECRAFT_INTERFACE, STAGECRAFT_PORT, STAGECRAFT_MEETING_PLACE, STAGECRAFT_LOG_DIR
///   STAGECRAFT_LOCAL_RANKS, STAGECRAFT_JOIN_SECONDS, STAGECRAFT_SILENCE_SECONDS
///   STAGECRAFT_PROCESSOR      "own" or "common"
/// `tell` writes to standard error.
/// Errors: UsageArgument for a value that makes no sense; those of read_hosts.
[[nodiscard]] SpawnOptions spawn_options_of_env();

/// The worker of a rank.
struct WorkerPlace {
  Rank rank;
  std::int64_t process = 0;       ///< its id; 0 before one was needed
  std::int64_t incarnation = 0;   ///< how often the worker was replaced
  std::string address;            ///< where tensors reach it; empty for a thread of this process
  std::string host;               ///< on which it runs; empty: this host, or none was needed yet
  ProcessorFacts processor = {};  ///< by which its libraries choose code; empty: no worker yet
};

class Cluster {
 public:
  // Declaring these leaves the class without a move: an object that was moved from is still a
  // cluster.
  Cluster(const Cluster&) = default;
  Cluster& operator=(const Cluster&) = default;
  ~Cluster() = default;

  /// Errors: UsageArgument for less than one rank.
  [[nodiscard]] static Cluster local(int ranks);

  /// Makes a cluster of worker processes, which start when a trainer first needs them. They end
  /// when the cluster and its trainers have ended, and when this process ends in any way.
  /// Errors: UsageArgument for options that make no sense; UsageFile if there is no worker program
  ///         or there are no credentials; ClusterMember if no port can be opened for them. With
  ///         ProcessorChoice::Common also those of starting workers, and ClusterMember if this
  ///         process has computed before.
  [[nodiscard]] static Cluster spawn(int ranks, const SpawnOptions& options = {});

  /// Takes its own options out of the program's arguments, each as `--option VALUE` or
  /// `--option=VALUE`:
  ///   --ranks N                    default: as many as the hosts have places, or the machine has
  ///                                processors, then at least 8: idle ranks cost nothing
  ///   --workers threads|processes|joining  default: threads
  ///   --credentials DIR            for processes
  /// The environment gives the options that the arguments leave out (from_env).
  /// Errors: UsageArgument for a value that makes no sense; those of spawn.
  [[nodiscard]] static Cluster from_args(int& argc, char** argv);

  /// Makes the cluster that STAGECRAFT_RANKS, STAGECRAFT_WORKERS and the variables of
  /// spawn_options_of_env() describe. `stagecraft launch` sets them.
  [[nodiscard]] static Cluster from_env();

  /// Ends the worker process of a rank, unless it has ended, and starts a new one in its place.
  /// Trainer::load or Trainer::recover then continues with it. The other ranks of the process are
  /// replaced too.
  /// Errors: UsageArgument for a rank that is a thread or not of this cluster; ClusterTimeout,
  ///         ClusterMember if the new worker does not come.
  void replace(Rank rank) const;

  /// Returns the workers by rank.
  [[nodiscard]] std::vector<WorkerPlace> workers() const;

  /// Returns how the processors of this process and of the ranks differ, so that they compute or
  /// may compute other bits, and how to repair that. Empty if they do not differ.
  [[nodiscard]] std::string processor_difference() const;

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
