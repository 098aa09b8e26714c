/// Cluster: the ranks a trainer may use.
///
/// Ranks are threads of this process. A cluster may be given to several trainers, at once or one
/// after the other; each has workers and a data plane of its own. It may be destroyed before its
/// trainers, and be a static object.
#pragma once

#include <memory>
#include <utility>

namespace stagecraft {

class Launcher;

class Cluster {
 public:
  // With these there is no move: one that was moved from is still a cluster.
  Cluster(const Cluster&) = default;
  Cluster& operator=(const Cluster&) = default;
  ~Cluster() = default;

  /// Errors: UsageArgument for less than one rank.
  [[nodiscard]] static Cluster local(int ranks);

  /// Takes `--ranks N` (or `--ranks=N`) out of the program's arguments; without it there are as
  /// many ranks as the machine has processors, at least 8: idle ranks cost nothing. Errors:
  /// UsageArgument for a count that is no number or less than one.
  [[nodiscard]] static Cluster from_args(int& argc, char** argv);

  [[nodiscard]] int ranks() const { return ranks_; }
  /// Starts the workers of this cluster's trainers.
  [[nodiscard]] const std::shared_ptr<const Launcher>& launcher() const { return launcher_; }

 private:
  Cluster(int ranks, std::shared_ptr<const Launcher> launcher)
      : ranks_(ranks), launcher_(std::move(launcher)) {}

  int ranks_;
  std::shared_ptr<const Launcher> launcher_;
};

}  // namespace stagecraft
