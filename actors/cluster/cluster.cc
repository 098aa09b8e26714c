#include "stagecraft/actors/cluster/cluster.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <thread>

#include <fmt/format.h>

#include "stagecraft/actors/cluster/cluster_setting.h"
#include "stagecraft/actors/launch/fleet/processes.h"
#include "stagecraft/actors/launch/threads.h"
#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

/// The settings that were given; none: not given.
struct Said {
  std::optional<ClusterSetting> ranks, workers, credentials;
};

void check_workers(const ClusterSetting& word) {
  if (word.text != "threads" && word.text != "processes" && word.text != "joining") {
    refuse(word, "threads, processes or joining");
  }
}

void check_ranks(int ranks) {
  if (ranks < 1) {
    throw Error(Errc::UsageArgument, fmt::format("a cluster has at least one rank, not {}", ranks));
  }
}

/// Removes argv[at, at + count).
void take_out(int& argc, char** argv, int at, int count) {
  std::copy(argv + at + count, argv + argc, argv + at);
  argc -= count;
  argv[argc] = nullptr;
}

/// Takes `--option VALUE` and `--option=VALUE` out of the arguments; the last one counts.
std::optional<ClusterSetting> take_option(int& argc, char** argv, std::string_view option) {
  std::optional<ClusterSetting> value;
  for (int i = 1; i < argc;) {
    const std::string_view word = argv[i];
    if (word == option) {
      value = ClusterSetting{i + 1 < argc ? argv[i + 1] : "", std::string(option)};
      take_out(argc, argv, i, i + 1 < argc ? 2 : 1);
    } else if (word.starts_with(option) && word.substr(option.size()).starts_with('=')) {
      value = ClusterSetting{std::string(word.substr(option.size() + 1)), std::string(option)};
      take_out(argc, argv, i, 1);
    } else {
      ++i;
    }
  }
  return value;
}

Said said_by_env() {
  return {.ranks = setting_of_variable("STAGECRAFT_RANKS"),
          .workers = setting_of_variable("STAGECRAFT_WORKERS"),
          .credentials = setting_of_variable("STAGECRAFT_CREDENTIALS")};
}

Cluster made_as(const Said& said) {
  if (said.workers) {
    check_workers(*said.workers);
  }
  SpawnOptions options = spawn_options_of_environment();
  const int usual = options.hosts.empty()
                        ? std::max(8, static_cast<int>(std::thread::hardware_concurrency()))
                        : options.local_ranks + options.ranks_per_process * slots_of(options.hosts);
  const int ranks = said.ranks ? number_from(*said.ranks, 1) : usual;
  if (!said.workers || said.workers->text == "threads") {
    return Cluster::local(ranks);
  }
  options.workers_come = said.workers->text == "joining";
  options.credentials = said.credentials ? said.credentials->text : "";
  return Cluster::spawn(ranks, options);
}

}  // namespace

Cluster Cluster::local(int ranks) {
  check_ranks(ranks);
  return {ranks, std::make_shared<ThreadLauncher>()};
}

Cluster Cluster::spawn(int ranks, const SpawnOptions& options) {
  check_ranks(ranks);
  return {ranks, launch_processes(options, ranks)};
}

Cluster Cluster::from_args(int& argc, char** argv) {
  Said said = said_by_env();
  const auto take = [&](std::optional<ClusterSetting>& value, std::string_view option) {
    if (auto taken = take_option(argc, argv, option)) {
      value = std::move(taken);
    }
  };
  take(said.ranks, "--ranks");
  take(said.workers, "--workers");
  take(said.credentials, "--credentials");
  return made_as(said);
}

Cluster Cluster::from_env() {
  return made_as(said_by_env());
}

void Cluster::replace(Rank rank) const {
  if (rank.value < 0 || rank.value >= ranks_) {
    throw Error(
        Errc::UsageArgument,
        fmt::format(
            "rank {} is none of this cluster, which has ranks 0 to {}", rank.value, ranks_ - 1));
  }
  launcher_->replace(rank);
}

std::vector<WorkerPlace> Cluster::workers() const {
  std::vector<WorkerPlace> all;
  for (int r = 0; r < ranks_; ++r) {
    all.push_back(launcher_->place(Rank(r)));
  }
  return all;
}

std::string Cluster::processor_difference() const {
  std::vector<NamedProcessor> all{{"this process", processor_of_this_process()}};
  for (const WorkerPlace& place : workers()) {
    if (!place.processor.capability.empty()) {
      all.emplace_back(
          fmt::format(
              "rank {}{}", place.rank.value, place.host.empty() ? "" : " (" + place.host + ")"),
          place.processor);
    }
  }
  const auto difference = difference_of(all);
  return difference ? "processes " + to_string(*difference) : "";
}

}  // namespace stagecraft
