#include "stagecraft/tools/train/run/run_cluster.h"

#include <iostream>
#include <string>

#include <fmt/format.h>

#include "stagecraft/actors/launch/ways/place_hosts.h"
#include "stagecraft/base/count_text.h"
#include "stagecraft/base/error.h"
#include "stagecraft/tools/train/decide/decide.h"

namespace stagecraft::tools {

SpawnOptions spawn_options(const TrainOptions& options) {
  const WorkerOptions& workers = options.workers;
  SpawnOptions spawn = spawn_options_of_environment();
  if (spawn.log_dir.empty()) {
    spawn.log_dir = options.keeping.logs;
  }
  spawn.workers_come = workers.kind == WorkerKind::Joining;
  spawn.credentials = workers.credentials.value_or(spawn.credentials);
  const bool is_by_hand = spawn.workers_come && spawn.workers_coming < 0;
  if (is_by_hand && spawn.credentials.empty()) {
    throw Error(Errc::UsageArgument,
                "--workers joining expects --credentials DIR, without which no worker can "
                "join: make them with `stagecraft credentials make DIR`, and start each worker "
                "with `stagecraft worker --join HOST:PORT --credentials DIR/worker-N`");
  }
  spawn.processor = workers.processor;
  for (const std::string& name : workers.spares) {
    spawn.spares.push_back({.name = name});
  }
  spawn.tell = [](const std::string& line) { std::cerr << "train: " + line + "\n"; };
  return spawn;
}

void check_hosts(const TrainOptions& options) {
  if (!options.workers.spares.empty()) {
    const SpawnOptions spawn = spawn_options(options);
    check_spares(spawn.hosts, spawn.spares);
  }
}

std::optional<Cluster> make_held_cluster(const TrainOptions& options, Console& console) {
  const WorkerOptions& workers = options.workers;
  if (workers.processor == ProcessorChoice::Own || workers.kind == WorkerKind::Threads ||
      options.run.dry_run) {
    return std::nullopt;
  }
  return Cluster::spawn(expected_ranks(options, console), spawn_options(options));
}

Cluster make_cluster(const TrainJob& job, const std::optional<Cluster>& held) {
  const int ranks = job.choice.layout.ranks();
  if (job.options.workers.kind == WorkerKind::Threads) {
    return Cluster::local(ranks);
  }
  const SpawnOptions spawn = spawn_options(job.options);
  if (held && held->ranks() < ranks) {
    throw Error(Errc::UsageArgument,
                fmt::format("--processor common starts the workers before the model is compiled, "
                            "and started {}, but the schedule has {}: give --ranks {}",
                            held->ranks(),
                            count_text(ranks, "rank"),
                            ranks));
  }
  if (const int most = ranks - spawn.local_ranks;
      spawn.workers_come && spawn.workers_coming > most) {
    throw Error(Errc::UsageArgument,
                fmt::format("the schedule has {0} ranks, but {1} processes were started: start {0} "
                            "processes (in a step of Slurm: srun --ntasks {0}), or give --ranks",
                            ranks,
                            spawn.local_ranks + spawn.workers_coming));
  }
  return held ? *held : Cluster::spawn(ranks, spawn);
}

}  // namespace stagecraft::tools
