/// SpawnOptions: how the worker processes of a cluster are started and watched.
///
/// Filled in by a program, or from the environment (cluster/spawn_options_of_env.h). The fleet and
/// its way (worker_way.h) read them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "stagecraft/actors/launch/network/hosts.h"

namespace stagecraft {

/// With which code of ATen, MKL and oneDNN the processes of a cluster compute.
enum class ProcessorChoice {
  Own,     ///< each with the widest that its host has: other kinds of hosts give other bits
  Common,  ///< all, this process too, with the widest that every host has
};

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
  /// written once they can join, and their credentials unless `credentials` names others. Both are
  /// removed with the cluster.
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

}  // namespace stagecraft
