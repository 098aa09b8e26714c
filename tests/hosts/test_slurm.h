/// TestSlurm runs a Slurm of the test on its own hosts (test_hosts.h): munged and slurmctld on the
/// first, slurmd on all, with keys, ports, files and logs in a private folder.
///
///     host-0  munged slurmctld slurmd   here srun, sbatch and others are called
///     host-1  slurmd                    nodes are called as hosts are
///     host-2  slurmd
///
/// Each daemon and each call has its own process namespace, so that everything it starts, including
/// processes that detach themselves, ends with the object and with the test, however the test ends.
/// Only root can make it, with Debian's munge, slurmctld, slurmd and slurm-client. Thread: the
/// test's own.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stagecraft/tests/hosts/test_hosts.h"

namespace stagecraft::tests {

struct TestSlurmOptions {
  /// Names of nodes in Slurm: "host-0", as the hosts call themselves, or "rack-0".
  std::string node_prefix = "host-";
  bool nodes_resolve = true;      ///< hosts resolve these names
  bool allocates_memory = false;  ///< CR_CPU_Memory: jobs get memory as well
};

class TestSlurm {
 public:
  /// Returns why this machine can have none; nothing if it can.
  [[nodiscard]] static std::optional<std::string> obstacle();

  /// Returns when all nodes are ready for jobs. Throws std::runtime_error with the daemons'
  /// messages.
  explicit TestSlurm(int nodes, TestSlurmOptions options = {});

  [[nodiscard]] const TestHosts& hosts() const { return hosts_; }
  /// Returns the folder where jobs are submitted; all nodes see it.
  [[nodiscard]] const std::string& folder() const { return work_.path(); }

  /// Returns words that call a program of Slurm, as a user on the first host would.
  [[nodiscard]] std::vector<std::string> call(const std::vector<std::string>& words) const;
  /// Runs them in folder().
  [[nodiscard]] CommandResult run(const std::vector<std::string>& words) const;

  /// Returns ids, on this machine, of all processes of jobs on a node whose command line holds
  /// `text`.
  [[nodiscard]] std::vector<int> processes(int node, const std::string& text) const {
    return hosts_.processes(node, text);
  }

 private:
  [[nodiscard]] std::string file(const std::string& name) const {
    return state_.path() + "/" + name;
  }
  [[nodiscard]] std::vector<std::string> at(int host, const std::vector<std::string>& words) const;
  void write_files() const;
  void start(int host, const std::string& name, const std::vector<std::string>& words);
  void wait_for_nodes() const;
  [[nodiscard]] std::string logs() const;

  const int nodes_;
  const TestSlurmOptions options_;
  TemporaryFolder state_;  ///< of the daemons
  TemporaryFolder work_;
  TestHosts hosts_;
  std::vector<std::unique_ptr<RunningCommand>> daemons_;  ///< destroyed first
};

}  // namespace stagecraft::tests
