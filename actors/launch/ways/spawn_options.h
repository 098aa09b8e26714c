/// SpawnOptions says how the worker processes of a cluster are started and watched.
///
/// A program fills it in, or the environment does (cluster/environment_options.h). The fleet and
/// its way (worker_way.h) read it.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "stagecraft/actors/launch/network/hosts.h"

namespace stagecraft {

/// ProcessorChoice selects the code of ATen, MKL and oneDNN with which the processes of a cluster
/// compute.
enum class ProcessorChoice {
  Own,     ///< each with the widest that its host has: other kinds of hosts give other bits
  Common,  ///< all, this process too, with the widest that every host has
};

struct SpawnOptions {
  int ranks_per_process = 1;
  int local_ranks = 0;  ///< the first `local_ranks` ranks are threads of this process
  /// Path of the worker program. Empty: the generic `stagecraft worker` (worker_main.h).
  std::string program;
  /// A folder made by `stagecraft credentials make`. Empty: the cluster makes one for itself and
  /// removes it at its end.
  std::string credentials;
  /// Hosts of the workers, filled one after the other. Empty: this host. Each host needs the same
  /// build, and must be reachable by ssh without a question.
  std::vector<Host> hosts;
  /// Hosts on which no worker starts at first. Fleet::replace moves a place to one of them if its
  /// host does not take another worker (place_hosts.h). Expects hosts.
  std::vector<Host> spares;
  std::vector<std::string> ssh;  ///< program that reaches the hosts, and its options; empty: "ssh"
  /// True if workers come by themselves (`stagecraft worker --join`), from anywhere. The fleet then
  /// starts none.
  bool workers_come = false;
  int workers_coming = -1;  ///< how many will come; -1: unknown
  /// The interface or address of this process that workers reach. Empty: the address from which it
  /// reaches the first other host, or loopback if there is none.
  std::string interface;
  std::uint16_t port = 0;  ///< where workers join; 0: any free port
  /// A folder that all hosts see. Workers that come by themselves find there: the file `address`,
  /// written once they can join, and their credentials unless `credentials` names others. Both are
  /// removed with the cluster.
  std::string meeting_place;
  std::string log_dir;  ///< gets one file per worker with its output; empty: none
  /// If Common, workers start with the cluster. Make the cluster before this process computes.
  ProcessorChoice processor = ProcessorChoice::Own;
  /// A function for lines for people: the address where workers of other hosts join, the processors
  /// to which each worker that came is bound, and the workers that are missing while the cluster
  /// waits for them. Called on any thread; must not block.
  std::function<void(const std::string& line)> tell;
  /// The interval of signs of life from an idle process. A process that sends nothing for `silence`
  /// is lost.
  std::chrono::milliseconds heartbeat{1000};
  std::chrono::milliseconds silence{5000};
  std::chrono::milliseconds join_deadline{std::chrono::seconds(60)};  ///< longest start of a worker
};

}  // namespace stagecraft
