/// How fast are sums over processes? This program adds buffers of 1, 16 and 64 MiB over 2 and 4
/// processes of this host, through shared memory and over ZeroMQ. It prints each beside the time of
/// a memcpy of the bytes that one process has to move: it reads and writes its part of all others,
/// and takes all parts.
///
///   collectives [--json] [--peer PYTHON --peer-script FILE]
///
/// The script measures gloo's all_reduce of float32. It takes `--json FILE` and writes an object by
/// processes ("2", "4") of objects by size ("1 MiB", "16 MiB", "64 MiB") of seconds.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/base/median.h"
#include "stagecraft/bench/cluster/gloo.h"
#include "stagecraft/bench/cluster/sides.h"
#include "stagecraft/bench/hardware.h"
#include "stagecraft/bench/seconds_of.h"
#include "stagecraft/compiler/libtorch/thread_count.h"
#include "stagecraft/futures/collective/transport_collective.h"
#include "stagecraft/futures/transport/shared_memory/memory_file.h"

namespace stagecraft::bench::collectives {
namespace {

constexpr std::int64_t kMebi = std::int64_t{1} << 20U;
constexpr std::array kSizes{kMebi, 16 * kMebi, 64 * kMebi};
constexpr std::array kProcesses{2, 4};
constexpr int kWarmUp = 3;

struct Row {
  std::string way;
  int processes = 0;
  std::int64_t bytes = 0;
  double seconds = 0.0;
};

int times_of(std::int64_t bytes) {
  return static_cast<int>(std::max<std::int64_t>(10, 256 * kMebi / bytes));
}

std::string size_text(std::int64_t bytes) {
  return fmt::format("{} MiB", bytes / kMebi);
}

Deadline in_a_minute() {
  return std::chrono::steady_clock::now() + std::chrono::minutes(1);
}

/// Returns the median of the sums of this side, in seconds.
double all_reduce(Side& side, std::int64_t bytes, std::int64_t shared) {
  const Link link(side, {.shared_memory = shared});
  std::vector<double> seconds;
  {
    TransportCollective collective(
        link.end, std::make_shared<WaitBoard>(), [] { set_own_thread_count(1); });
    Group group;
    for (int rank = 0; rank < side.sides(); ++rank) {
      group.ranks.emplace_back(rank);
    }
    at::Tensor buffer =
        link.end->lendable(bytes / static_cast<std::int64_t>(sizeof(float)), at::kFloat).fill_(1.0);
    for (int i = 0; i < kWarmUp + times_of(bytes); ++i) {
      const double taken = seconds_of([&] {
        buffer = collective.all_reduce(group, {.number = i}, buffer)->wait(in_a_minute());
      });
      if (i >= kWarmUp) {
        seconds.push_back(taken);
      }
      buffer.fill_(1.0);  // so that no number grows without limit
    }
  }
  (void)side.exchange("");  // all has arrived before a port closes
  return median(seconds);
}

/// Returns the seconds of a memcpy of the bytes that a process moves in a sum.
double memory_copy(int processes, std::int64_t bytes) {
  const at::Tensor from = at::ones({bytes}, at::kByte), to = at::zeros({bytes}, at::kByte);
  std::vector<double> seconds;
  for (int i = 0; i < times_of(bytes); ++i) {
    seconds.push_back(seconds_of([&] {
      std::memcpy(to.mutable_data_ptr(), from.const_data_ptr(), static_cast<std::size_t>(bytes));
    }));
  }
  return median(seconds) * 2.0 * (processes - 1) / processes;
}

std::vector<Row> gloo(const Peer& peer) {
  const nlohmann::json measured = gloo_figures(peer);
  std::vector<Row> rows;
  for (const int processes : kProcesses) {
    for (const std::int64_t bytes : kSizes) {
      rows.push_back(
          {"gloo", processes, bytes, measured.at(std::to_string(processes)).at(size_text(bytes))});
    }
  }
  return rows;
}

void print(const Row& row, bool json) {
  if (json) {
    fmt::print("{}\n",
               nlohmann::json{{"way", row.way},
                              {"processes", row.processes},
                              {"bytes", row.bytes},
                              {"seconds", row.seconds}}
                   .dump());
  } else {
    fmt::print("{:>9}  {:>6}  {:<14}{:>10.2f} ms{:>10.2f} GB/s\n",
               row.processes,
               size_text(row.bytes),
               row.way,
               row.seconds * 1e3,
               static_cast<double>(row.bytes) / row.seconds * 1e-9);
  }
}

}  // namespace

int run(int argc, char** argv) {
  CLI::App app("How fast are sums over processes?");
  bool json = false;
  Peer peer;
  app.add_flag("--json", json, "print one object for each row");
  add_gloo_options(app, peer);
  CLI11_PARSE(app, argc, argv);
  if (!json) {
    fmt::print("{}\nall_reduce of float32; GB/s: of the buffer\n{:>9}  {:>6}  {:<14}{:>13}{:>15}\n",
               hardware(),
               "processes",
               "buffer",
               "way",
               "time",
               "");
  }
  const std::pair<const char*, std::int64_t> ways[] = {{"shared memory", MemoryFile::usual_limit()},
                                                       {"ZeroMQ", 0}};
  for (const int processes : kProcesses) {
    Side::run(processes, [&](Side& side) {
      set_own_thread_count(1);
      for (const std::int64_t bytes : kSizes) {
        for (const auto& [name, shared] : ways) {
          const Row row{name, processes, bytes, all_reduce(side, bytes, shared)};
          if (side.is_first()) {
            print(row, json);
          }
        }
        if (side.is_first()) {
          print({"memcpy", processes, bytes, memory_copy(processes, bytes)}, json);
        }
        (void)side.exchange("");
      }
    });
  }
  if (!peer.python.empty()) {
    for (const Row& row : gloo(peer)) {
      print(row, json);
    }
  }
  return 0;
}

}  // namespace stagecraft::bench::collectives
