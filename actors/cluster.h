/// Cluster: the ranks a trainer may use.
///
/// Ranks are threads of this process, or worker processes of this host or others. A cluster may be
/// given to several trainers, at once or one after the other; each has workers and a data plane of
/// its own. It may be destroyed before its trainers, and be a static object.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "stagecraft/actors/hosts.h"
#include "stagecraft/actors/launch/processor.h"
#include "stagecraft/base/ids.h"

namespace stagecraft {

class Launcher;

/// With which code of ATen, MKL and oneDNN the processes of a cluster compute.
enum class ProcessorChoice {
  Own,     ///< each with the widest that its host has: other bits on other kinds of hosts
  Common,  ///< all, this process too, with the widest that all have
};

/// How worker processes are started and watched.
struct SpawnOptions {
  int ranks_per_process = 1;
  int local_ranks = 0;  ///< the first so many ranks are threads of this process
  /// What runs as a worker: a path; empty: the generic `stagecraft worker` (worker_main.h).
  std::string program;
  /// A folder made by `stagecraft credentials make`; empty: made for this cluster, gone with it.
  std::string credentials;
  /// Where they run, filled one after the other; empty: on this host. The same build is needed
  /// there, and a way by ssh that asks for nothing.
  std::vector<Host> hosts;
  std::vector<std::string> ssh;  ///< the program that reaches them, and its options; empty: "ssh"
  /// Nobody is started: workers come by themselves (`stagecraft worker --join`), from anywhere.
  bool workers_come = false;
  int workers_coming = -1;  ///< so many and no more, where that is known; -1: it is not
  /// Where workers reach this process: one of its interfaces, or an address of it. Empty: the
  /// address from which the first other host is reached; loopback where there is none.
  std::string interface;
  std::uint16_t port = 0;  ///< where they join; 0: any that is free
  /// A folder that all hosts see, where workers that come find whom to join: its file `address`,
  /// once they can, and unless `credentials` says others, their credentials. Both go with the
  /// cluster.
  std::string meeting_place;
  std::string log_dir;  ///< a file for what each worker writes; empty: none
  /// Common: workers are started with the cluster, which has to be made before anything computes.
  ProcessorChoice processor = ProcessorChoice::Own;
  /// Told in lines for people where workers of other hosts join, where each is bound that has come,
  /// and who is missing while they are waited for. On any thread; must not block.
  std::function<void(const std::string& line)> tell;
  /// A process that is idle says so every `heartbeat`; one that says nothing for `silence` is lost.
  std::chrono::milliseconds heartbeat{1000};
  std::chrono::milliseconds silence{5000};
  std::chrono::milliseconds join_deadline{std::chrono::seconds(60)};  ///< longest start of a worker
};

/// As these say, of which none has to be there:
///   STAGECRAFT_WORKERS        "joining": workers_come
///   STAGECRAFT_WORKERS_COMING how many
///   STAGECRAFT_CREDENTIALS    a folder
///   STAGECRAFT_HOSTS          a file of hosts, each with STAGECRAFT_PER_HOST slots where set
///   STAGECRAFT_SSH            the program that reaches them, and its options
///   STAGECRAFT_INTERFACE, STAGECRAFT_PORT, STAGECRAFT_MEETING_PLACE, STAGECRAFT_LOG_DIR
///   STAGECRAFT_LOCAL_RANKS, STAGECRAFT_JOIN_SECONDS, STAGECRAFT_SILENCE_SECONDS
///   STAGECRAFT_PROCESSOR      "own" or "common"
/// What there is to tell goes to standard error.
/// Errors: UsageArgument for a value that makes no sense; those of read_hosts.
[[nodiscard]] SpawnOptions spawn_options_of_env();

/// Who stands behind a rank.
struct WorkerPlace {
  Rank rank;
  std::int64_t process = 0;       ///< its id; 0 while none was needed yet
  std::int64_t incarnation = 0;   ///< how often it was replaced
  std::string address;            ///< where tensors reach it; empty for a thread of this process
  std::string host;               ///< on which it runs; empty: this one, or nobody was needed yet
  ProcessorFacts processor = {};  ///< by which its libraries choose code; empty: nobody yet
};

class Cluster {
 public:
  // With these there is no move: one that was moved from is still a cluster.
  Cluster(const Cluster&) = default;
  Cluster& operator=(const Cluster&) = default;
  ~Cluster() = default;

  /// Errors: UsageArgument for less than one rank.
  [[nodiscard]] static Cluster local(int ranks);

  /// Worker processes, started when a trainer first needs them. They end when the
  /// cluster and its trainers have, and when this process ends, however it does.
  /// Errors: UsageArgument for options that make no sense; UsageFile where no worker program or no
  ///         credentials are found; ClusterMember when no port can be opened for them. With
  ///         ProcessorChoice::Common those of starting workers, and ClusterMember when this process
  ///         has computed before.
  [[nodiscard]] static Cluster spawn(int ranks, const SpawnOptions& options = {});

  /// Takes its own options out of the program's arguments, each as `--option VALUE` or
  /// `--option=VALUE`:
  ///   --ranks N                    as many as the hosts have places, or the machine has processors
  ///                                unless said, and then at least 8: idle ranks cost nothing
  ///   --workers threads|processes|joining  threads unless said
  ///   --credentials DIR            for processes
  /// What is not said there is looked for in the environment (from_env).
  /// Errors: UsageArgument for a value that makes no sense; those of spawn.
  [[nodiscard]] static Cluster from_args(int& argc, char** argv);

  /// As STAGECRAFT_RANKS, STAGECRAFT_WORKERS and those of spawn_options_of_env() say; `stagecraft
  /// launch` sets them.
  [[nodiscard]] static Cluster from_env();

  /// Ends the worker process of a rank, if it has not ended, and puts a new one in its place: then
  /// Trainer::load or Trainer::recover of its trainers goes on with it. Other ranks of the process
  /// are replaced with it.
  /// Errors: UsageArgument for a rank that is a thread, or none of this cluster; ClusterTimeout,
  ///         ClusterMember when the new worker does not come.
  void replace(Rank rank) const;

  /// By rank.
  [[nodiscard]] std::vector<WorkerPlace> workers() const;

  /// In what the processors of this process and of the ranks differ, so that they compute other
  /// bits, or may, with what mends it; empty where they do not.
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
