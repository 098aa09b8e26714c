/// Cluster holds the ranks that a trainer may use.
///
/// Ranks are threads of this process, or worker processes on this host or on others. Several
/// trainers may use a cluster, at once or one after the other; each has its own workers and its own
/// data plane. A cluster may be destroyed before its trainers, and may be a static object.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "stagecraft/actors/cluster/environment_options.h"
#include "stagecraft/actors/launch/ways/spawn_options.h"
#include "stagecraft/actors/launch/worker_place.h"
#include "stagecraft/actors/remote/remote_actor.h"
#include "stagecraft/base/ids.h"

namespace stagecraft {

class Launcher;

class Cluster {
 public:
  /// Makes a cluster of the ranks that `launcher` starts.
  Cluster(int ranks, std::shared_ptr<Launcher> launcher)
      : ranks_(ranks),
        launcher_(std::move(launcher)),
        actors_(std::make_shared<RemoteActors>(launcher_, ranks)) {}

  // Declaring these leaves the class without a move, so an object that was moved from is still a
  // cluster.
  Cluster(const Cluster&) = default;
  Cluster& operator=(const Cluster&) = default;
  ~Cluster() = default;

  /// Makes a cluster of threads. Errors: UsageArgument for less than one rank.
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
  /// spawn_options_of_environment() describe. `stagecraft launch` sets them.
  [[nodiscard]] static Cluster from_env();

  /// Ends the worker process of a rank, unless it has ended, and starts a new one in its place: on
  /// the same host, or, if that takes none, on one that SpawnOptions::spares allows.
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

  /// Makes an object of T on a rank, beside whatever the rank trains, with threads of its own, and
  /// waits for its constructor: `cluster.spawn<Tokenizer>(on(Rank(2)), "vocabulary.txt")`.
  /// Errors: those of RemoteActors::make.
  template <class T, class... Given>
  [[nodiscard]] RemoteActor<T> spawn(const On& on, Given&&... given) const {
    return RemoteActor<T>(actors_, on, std::forward<Given>(given)...);
  }

  /// Returns a future of a value that is here, to pass to several calls. Each sends it once more.
  template <class T>
  [[nodiscard]] static Future<T> put(T value) {
    Promise<T> promise;
    promise.set_value(std::move(value));
    return promise.future();
  }

  [[nodiscard]] int ranks() const { return ranks_; }
  /// Knows the actors of the ranks, and the values that stay there.
  [[nodiscard]] const std::shared_ptr<RemoteActors>& actors() const { return actors_; }
  /// Starts the workers of this cluster's trainers.
  [[nodiscard]] const std::shared_ptr<Launcher>& launcher() const { return launcher_; }

 private:
  int ranks_;
  std::shared_ptr<Launcher> launcher_;
  std::shared_ptr<RemoteActors> actors_;
};

}  // namespace stagecraft
