/// Cluster: the ranks a trainer may use.
///
/// Ranks are threads of this process. A cluster may be given to several trainers, at once or one
/// after the other; each has workers and a data plane of its own. It may be destroyed before its
/// trainers.
///
/// CL-1: a Cluster is a handle, and none is empty: copying or moving one gives another of the same
/// ranks.
#pragma once

#include <memory>

namespace stagecraft {

class ActorHost;

class Cluster {
 public:
  Cluster(const Cluster&) = default;  // keeps CL-1: with these there is no move
  Cluster& operator=(const Cluster&) = default;
  ~Cluster() = default;

  /// Errors: UsageArgument for less than one rank.
  [[nodiscard]] static Cluster local(int ranks);

  /// Takes `--ranks N` (or `--ranks=N`) out of the program's arguments; without it there are as
  /// many ranks as the machine has processors, at least 8: idle ranks cost nothing. Errors:
  /// UsageArgument for a count that is no number or less than one.
  [[nodiscard]] static Cluster from_args(int& argc, char** argv);

  [[nodiscard]] int ranks() const { return ranks_; }

  /// What trainers spawn their actors into.
  [[nodiscard]] const std::shared_ptr<ActorHost>& host() const { return host_; }

 private:
  explicit Cluster(int ranks);

  int ranks_;
  std::shared_ptr<ActorHost> host_;
};

}  // namespace stagecraft
